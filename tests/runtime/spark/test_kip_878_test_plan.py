"""KIP-878's test plan: an application on Spark continues while external and internal topics are expanded."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import attrs
import pytest
from confluent_kafka import Consumer, KafkaException, TopicPartition
from pyspark.sql import SparkSession

from headwater.kafka import Connection
from headwater.spec import load_text
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.application import StreamsApplication
from headwater_spark.driver.preflight import check_runnable
from headwater_spark.driver.run_settings import RunSettings
from headwater_spark.driver.states import ClientState
from tests.control.agent_process import AgentProcess
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.produced_records import Entry, ProducedRecords, round_of
from tests.runtime.spark.tenants import partition_of

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]

_TIMEOUT_SECONDS = 300.0
_FOLLOW_UP_MS = 30_000
"""More than the expansions of all source topics take on a busy machine: they are one expansion."""
_SESSION_TIMEOUT_MS = 30_000
_ROUND_SECONDS, _LATER_ROUND_SECONDS = 2.0, 6.0
"""More rounds show the same, and take CPU time: each has records for every partition.

Records of later rounds are written while the application reads the partitions that were added last.
"""
_SOURCES = ("orders", "customers", "purchases", "clicks", "albums")
_SINKS = ("joined", "counted", "enriched", "summed")
_OLD = {**dict.fromkeys((*_SOURCES, *_SINKS), 2), "albums": 3}
_NEW = {**dict.fromkeys((*_SOURCES, *_SINKS), 4), "albums": 5}
_PARALLELISM = {"0": 4, "1": 4, "2": 4, "3": 5, "4": 4}
_INTERNAL = {
    "counts-repartition": 4,
    "counts-changelog": 4,
    "customers-changelog": 4,
    "purchases-changelog": 4,
    "albums-changelog": 5,
    "by-album-subscription-registration-topic": 5,
    "by-album-subscription-store-changelog": 5,
    "by-album-subscription-response-topic": 4,
    "sums-changelog": 4,
}
_DOCUMENT = """
application:
  id: APP
  config:
    partition.autoscaling.enabled: true
    static.partitioner.class: "tests.runtime.spark.tenants:ByTenant"
    processing.guarantee: exactly_once_v2
    statestore.cache.max.bytes: 0
    repartition.purge.interval.ms: 3600000
topology:
  - stream: {topic: orders-APP, serdes: TEXTS, as: orders}
  - table: {topic: customers-APP, serdes: TEXTS, as: customers, materialized: customers}
  - join: {from: orders, with: customers, value: "concat(left, '+', right)"}
  - to: {topic: joined-APP}
  - selectKey: {from: orders, key: "substring_index(value, '|', 1)"}
  - groupByKey:
  - count: {materialized: counts}
  - toStream:
  - mapValues: {value: "string(value)", serdes: {value: string}}
  - to: {topic: counted-APP}
  - table: {topic: purchases-APP, serdes: TEXTS, as: purchases, materialized: purchases}
  - table: {topic: albums-APP, serdes: TEXTS, as: albums, materialized: albums}
  - join:
      from: purchases
      with: albums
      foreignKey: "substring_index(value, '|', 1)"
      value: "concat(left, '+', right)"
      name: by-album
  - toStream:
  - to: {topic: enriched-APP}
  - stream: {topic: clicks-APP, serdes: TEXTS}
  - process:
      class: "tests.runtime.spark.tenants:Sums"
      stores: [{name: sums, kind: keyValue, serdes: {key: string, value: long}}]
      name: sums
  - to: {topic: summed-APP}
""".replace("TEXTS", "{key: string, value: string}")


@attrs.frozen
class ExpandingApplication:
    """The application, its topics, and all records that were produced to them."""

    id: str
    servers: str
    topics: Topics
    client: StreamsApplication
    produced: ProducedRecords

    def await_processed(self) -> None:
        """Wait until all produced records are processed."""
        assert until(lambda: self.is_consumed(*_SOURCES), _TIMEOUT_SECONDS), self.status()
        self.client.wait_until_idle()
        assert self.client.state is ClientState.RUNNING, self.status()

    def put_and_await(self, entries: Sequence[Entry]) -> None:
        self.produced.put(entries)
        self.await_processed()

    def is_consumed(self, *sources: str) -> bool:
        """Return whether the application's group has committed the end offsets of all partitions.

        False also while a partition that was just added has no leader.
        """
        assert not self.client.state.is_final, self.status()
        with suppress(KafkaException):
            return self._has_committed_ends(*sources)
        return False

    def _has_committed_ends(self, *sources: str) -> bool:
        reader = Consumer({"bootstrap.servers": self.servers, "group.id": self.id})
        try:
            partitions = [
                TopicPartition(name, each)
                for name in map(self.produced.name, sources)
                for each in range(self.topics.partitions(name))
            ]
            found = reader.committed(partitions, 90)
            ends = [reader.get_watermark_offsets(each, 30)[1] for each in partitions]
            return [max(each.offset, 0) for each in found] == ends
        finally:
            reader.close()

    def status(self) -> object:
        return self.client.state, self.client.problems, list(self.client.subtopology_status())

    def await_rounds(self, rounds: int) -> None:
        """Wait until `rounds` more rounds are produced; call it inside the block of `flow`."""
        expected = len(self.produced.entries) + rounds * len(round_of(0, 2, 3))
        assert until(lambda: len(self.produced.entries) >= expected, _TIMEOUT_SECONDS)

    @contextmanager
    def flow(self, first: int, seconds: float) -> Iterator[None]:
        """Produce round after round of the first two tenants while the block runs; `first` is a number."""
        stop = Event()

        def produce() -> None:
            number = first
            while not stop.wait(seconds):
                self.produced.put(round_of(number, 2, 3))
                number += 1

        with ThreadPoolExecutor(1) as threads:
            producing = threads.submit(produce)
            try:
                yield
            finally:
                stop.set()
            producing.result()

    def check_results(self) -> None:
        """Compare the results of all four parts with the produced records."""
        assert self._values("joined") == self.produced.joined()
        assert self._values("counted") == self.produced.counted()
        assert self._values("summed") == self.produced.summed()
        enriched = self._values("enriched")
        assert {key: each[-1] for key, each in enriched.items() if each[-1]} == self.produced.enriched()
        pairs = [(key, value) for key, values in enriched.items() for value in values if value]
        assert len(pairs) == len(set(pairs))
        assert set(pairs) <= self.produced.possible()

    def check_partitions(self) -> None:
        """Check that every record in internal topics is on the permanent partition of its key."""
        for name in map(f"{self.id}-{{}}".format, self.internal()):
            for _, partition, _, _, key, *_ in self.topics.get(name):
                assert key is not None
                assert partition == partition_of(
                    foreign(key) if "subscription-store" in name else key.decode()
                )

    def _values(self, sink: str) -> Mapping[str, Sequence[str | None]]:
        found: dict[str, list[str | None]] = defaultdict(list)
        for _, partition, _, _, key, value, *_ in self.topics.get(self.produced.name(sink)):
            assert key is not None
            assert partition == partition_of(key.decode())
            found[key.decode()].append(None if value is None else value.decode())
        return found

    def parallelism(self) -> Mapping[str, int]:
        """Return sub-topology → number of tasks, as the runtime reports it."""
        return {part["id"]: part["parallelism"] for part in self.client.subtopology_status()}

    def internal(self) -> Mapping[str, int]:
        names = [name for name in self.topics.names() if name.startswith(f"{self.id}-")]
        return {name.removeprefix(f"{self.id}-"): self.topics.partitions(name) for name in sorted(names)}


@pytest.fixture
def application(
    spark: SparkSession, kafka: LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Iterator[ExpandingApplication]:
    id_, servers = unique("app"), kafka.bootstrap_servers
    (tmp_path / "documents").mkdir()
    text = _DOCUMENT.replace("APP", id_)
    (tmp_path / "documents" / "plan.yaml").write_text(text)
    loaded = load_text(text, "plan.yaml")
    assert not loaded.problems, loaded.problems
    topics = Topics(servers, keeps_producer=True)
    produced = ProducedRecords(topics, id_)
    topics.create({produced.name(topic): count for topic, count in _OLD.items()})
    client = StreamsApplication(
        spark,
        loaded.documents[0],
        check_runnable(loaded.documents[0]).programs,
        RunSettings(
            connection=Connection(bootstrap_servers=(servers,)),
            checkpoint=str(tmp_path / "checkpoint"),
            state_folder=tmp_path / "state",
            check_interval_seconds=1,
        ),
    )
    client.start()
    yield ExpandingApplication(id_, servers, topics, client, produced)
    client.close()


@pytest.fixture
def agent(
    application: ExpandingApplication, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AgentProcess]:
    monkeypatch.setenv("EXPANSIONS_FILE", str(tmp_path / "expansions"))
    made = AgentProcess(
        "agent-1",
        tmp_path / "documents",
        application.servers,
        application.id,
        _FOLLOW_UP_MS,
        session_timeout_ms=_SESSION_TIMEOUT_MS,
    )
    yield made
    made.process.kill()
    made.process.wait()


def test_application_is_expanded_with_its_topics_while_records_flow(
    application: ExpandingApplication, agent: AgentProcess, tmp_path: Path
) -> None:
    application.put_and_await(customers(2))
    for number in range(2):
        application.produced.put(round_of(number, 2, 3))
    application.await_processed()
    application.check_results()
    await_parallelism(application, agent, {part: 3 if part == "3" else 2 for part in _PARALLELISM})
    with application.flow(100, _ROUND_SECONDS):
        for topic in (*_SINKS, *_SOURCES):  # downstream first
            application.topics.expand(application.produced.name(topic), _NEW[topic])
            application.await_rounds(
                2 if topic == "orders" else 0
            )  # they are joined with customers, which are expanded later
        application.await_rounds(1)
    with application.flow(200, _LATER_ROUND_SECONDS):
        await_parallelism(application, agent, _PARALLELISM)
        # The parallelism of a sub-topology is that of its largest topic: others may still grow.
        assert until(lambda: application.internal() == _INTERNAL, _TIMEOUT_SECONDS), application.internal()
        new = [entry for entry in customers(4) if partition_of(entry[1]) >= 2]
        application.produced.put(new)
        assert until(lambda: application.is_consumed("customers"), _TIMEOUT_SECONDS), application.status()
        application.produced.put(round_of(50, 4, 5))
    application.await_processed()
    application.put_and_await(customers(4, "renamed"))
    application.produced.put(round_of(51, 4, 5))
    # After the key is written again, Kafka Streams ignores the response to the deletion, even without a
    # match.
    application.put_and_await(
        [("albums", "t1:a0", None), ("albums", "t4:a1", None), ("purchases", "t3:p1", None)]
    )
    application.produced.put(round_of(52, 4, 5))
    application.put_and_await([("purchases", "t0:p1", None), ("purchases", "t3:p0", None)])
    application.check_results()
    application.check_partitions()
    assert until(lambda: application.parallelism() == _PARALLELISM, _TIMEOUT_SECONDS), application.status()
    agent.await_line("callback called")
    assert agent.value("num_autoscaling_failures_total", client_id="agent-1") == 0
    assert agent.end() == 0
    assert (tmp_path / "expansions").read_text() == "3 5\n"


def customers(tenants: int, word: str = "named") -> list[Entry]:
    return [("customers", f"t{t}:c{each}", f"{word} {t}.{each}") for t in range(tenants) for each in range(2)]


def await_parallelism(
    application: ExpandingApplication, agent: AgentProcess, expected: Mapping[str, int]
) -> None:
    """Wait until the agent's metrics report the expected number of tasks for every sub-topology."""

    def reported() -> Mapping[str, set[float | None]]:
        found = {
            (sample.name, sample.labels.get("subtopology_id")): sample.value
            for sample in agent.samples()
            if sample.labels.get("application_id") == application.id
        }
        return {
            part: {found.get((f"{kind}_subtopology_parallelism", part)) for kind in ("current", "expected")}
            for part in expected
        }

    both = {part: {count} for part, count in expected.items()}
    assert until(lambda: reported() == both, _TIMEOUT_SECONDS), reported()


def foreign(key: bytes) -> str:
    """Return the foreign key of a subscription's key (length, foreign key, key)."""
    return key[4 : 4 + int.from_bytes(key[:4], "big")].decode()
