"""The consumer lag of the applications by topic: end offsets minus committed offsets."""

import time
from collections.abc import Callable, Iterator, Mapping
from threading import Event, Thread
from typing import Any, Self

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition
from prometheus_client import CollectorRegistry
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from headwater.agent.state import AgentState
from headwater.kafka import Connection
from headwater.kafka.expansion_journal import client_settings
from headwater.model.compiled import TopicKind
from headwater.model.expansions import TopicCounts

PERIOD_SECONDS = 30.0
_REQUEST_SECONDS = 10.0
_END = -1
"""The time in ListOffsets that stands for the end of a partition."""

_log = structlog.get_logger(__name__)


def consumed_topics(state: AgentState) -> Mapping[str, TopicCounts]:
    """Return application → the topics that its group consumes, with their partition counts."""
    return {
        compiled.application.id: {
            topic: state.observed_counts[topic].partitions
            for topic in (
                *compiled.external_sources,
                *(each.name for each in compiled.internal_topics if each.kind is not TopicKind.CHANGELOG),
            )
            if topic in state.observed_counts
        }
        for compiled in state.requirements.applications
    }


class LagWatch(Collector):
    """Reads the lag periodically, in a thread of its own: two requests for each group. A context manager.

    A group that cannot be read has no samples.
    """

    def __init__(
        self,
        connection: Connection,
        registry: CollectorRegistry,
        client_id: str,
        consumed: Callable[[], Mapping[str, TopicCounts]],
        period_seconds: float = PERIOD_SECONDS,
    ) -> None:
        self._settings = client_settings(connection, client_id)
        self._consumed = consumed
        self._period = period_seconds
        self._lags: Mapping[str, Mapping[str, int]] = {}
        self._ended = Event()
        registry.register(self)

    def collect(self) -> Iterator[Metric]:
        lag = GaugeMetricFamily(
            "headwater_agent_consumer_lag",
            "Records of the topic that the consumer group of the application has not consumed",
            labels=["application_id", "topic"],
        )
        for application, topics in self._lags.items():
            for topic, records in topics.items():
                lag.add_metric([application, topic], records)
        yield lag

    def __enter__(self) -> Self:
        Thread(target=self._watch, name="lag", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.is_set():
            begin = time.monotonic()
            self._lags = {
                group: lags
                for group, topics in self._consumed().items()
                if not self._ended.is_set() and (lags := self._lag(group, topics))
            }
            self._ended.wait(max(self._period - (time.monotonic() - begin), 1.0))

    def _lag(self, group: str, topics: TopicCounts) -> Mapping[str, int]:
        try:
            return group_lag(self._settings, group, topics)
        except KafkaException as error:
            _log.debug("lag not read", group=group, reason=str(error))
            return {}


def group_lag(settings: Mapping[str, Any], group: str, topics: TopicCounts) -> Mapping[str, int]:
    """Return topic → lag in records, over the partitions for which the group has committed offsets.

    Uses a consumer that never joins the group: librdkafka's admin client (2.16) crashes on an answer that
    says that the coordinator has moved or is not available yet, and aborts the process when brokers go down
    while it searches for the leaders of partitions. Raises `KafkaException`.
    """
    reader = Consumer({
        **settings,
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": "read_uncommitted",  # to the end of the log, as other tools show the lag
    })  # fmt: skip
    try:
        partitions = [
            TopicPartition(topic, number) for topic, count in topics.items() for number in range(count)
        ]
        committed = {
            (each.topic, each.partition): each.offset
            for each in reader.committed(partitions, timeout=_REQUEST_SECONDS)
            if each.error is None and each.offset >= 0
        }
        ends = [TopicPartition(*each, _END) for each in committed]
        found = reader.offsets_for_times(ends, timeout=_REQUEST_SECONDS) if ends else []
    finally:
        reader.close()
    lags: dict[str, int] = {}
    for end in found:
        if end.error is not None:
            raise KafkaException(end.error)
        behind = end.offset - committed[end.topic, end.partition]
        lags[end.topic] = lags.get(end.topic, 0) + max(behind, 0)
    return lags
