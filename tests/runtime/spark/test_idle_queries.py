"""Queries without new records wait for a signal, and process the next record at once."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import attrs
import pytest
from confluent_kafka import Producer
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from headwater.kafka import Connection
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.input.sources import KafkaSource, read_stream
from headwater_spark.driver.input.watch import WatchMode
from headwater_spark.driver.queries import idle_queries
from headwater_spark.engine.records import TopicPartition
from headwater_spark.spark_internals.input_signals import InputSignal, InputSignals
from tests.runtime.spark.applications import COUNT, MAP, TIMEOUT_SECONDS, Cluster, RunningApplication

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

_FOREVER = 3600.0


@attrs.frozen
class _Query:
    query: StreamingQuery
    signal: InputSignal
    values: list[bytes]

    @property
    def waits(self) -> bool:
        """Return whether the query waits for a signal."""
        return "await" in _stack(self.query)


def _stack(query: StreamingQuery) -> str:
    execution = query._jsq.streamingQuery()
    trace = execution.queryExecutionThread().getStackTrace()
    return " ".join(str(each.getMethodName()) for each in trace if "SignaledSource" in each.getClassName())


@pytest.fixture
def query(cluster: Cluster, tmp_path: Path) -> Callable[[str], AbstractContextManager[_Query]]:
    """Return a context with a query that reads a topic, one record in a batch."""

    @contextmanager
    def run(topic: str) -> Iterator[_Query]:
        signal = InputSignals(cluster.spark).create()
        assert signal is not None
        values: list[bytes] = []

        def process(rows: DataFrame, _: int) -> None:
            values.extend(bytes(row.value) for row in rows.orderBy("offset").collect())

        source = KafkaSource(
            connection=Connection(bootstrap_servers=(cluster.servers,)),
            topics=(topic,),
            start_offsets={(topic, 0): 0},
            records_at_once=1,
        )
        stream = read_stream(cluster.spark, source, signal)
        checkpoint = str(tmp_path / topic)
        writer = stream.writeStream.option("checkpointLocation", checkpoint).foreachBatch(process)
        signal.wait_at_most(_FOREVER)
        started = writer.start()
        try:
            yield _Query(started, signal, values)
        finally:
            started.stop()

    return run


def test_query_waits_for_a_signal_when_it_has_read_everything(
    cluster: Cluster,
    query: Callable[[str], AbstractContextManager[_Query]],
    unique: Callable[[str], str],
) -> None:
    topic = unique("topic")
    cluster.topics.create({topic: 1})
    cluster.topics.put(topic, [(None, b"%d" % each, 0) for each in range(3)], 0)
    with query(topic) as started:
        assert until(lambda: started.values == [b"0", b"1", b"2"], TIMEOUT_SECONDS), "batches of one record"
        assert until(lambda: started.waits, TIMEOUT_SECONDS)
        cluster.topics.put(topic, [(None, b"3", 0)], 0)
        assert started.waits
        started.signal.send()
        assert until(lambda: started.values[3:] == [b"3"], TIMEOUT_SECONDS)
        assert until(lambda: started.waits, TIMEOUT_SECONDS)
        cluster.topics.put(topic, [(None, b"4", 0)], 0)
        started.signal.wait_at_most(0)
        assert until(lambda: started.values[4:] == [b"4"], TIMEOUT_SECONDS)
        started.signal.wait_at_most(_FOREVER)
        assert until(lambda: started.waits, TIMEOUT_SECONDS)
        started.query.stop()
        assert started.query.exception() is None


def _modes(running: RunningApplication) -> set[WatchMode]:
    return {watch.mode for watch in running.application._parts.input_watch._watches.values()}


@pytest.mark.parametrize(
    "guarantee",
    # At least once, `test_added_partition_is_read_while_the_query_waits` needs signals, too.
    [pytest.param("at_least_once", marks=pytest.mark.soak), "exactly_once_v2"],
)
def test_record_after_a_long_idle_time_is_processed_at_once(
    cluster: Cluster, guarantee: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the signals of the watch, each query would wait for an hour."""
    monkeypatch.setattr(idle_queries, "_MAX_WAIT_SECONDS", _FOREVER)
    with cluster.application(COUNT, {"processing.guarantee": guarantee}) as running:
        running.application.start()
        for number in range(1, 4):
            assert until(lambda: _modes(running) == {WatchMode.WATCHED}, TIMEOUT_SECONDS)
            running.feed(b"a")
            counts = [each.to_bytes(8, "big") for each in range(1, number + 1)]
            assert until(lambda expected=counts: running.values() == expected, TIMEOUT_SECONDS)  # type: ignore[misc]
        running.feed(b"a")
        running.application.wait_until_idle()
        assert len(running.values()) == 4


def test_added_partition_is_read_while_the_query_waits(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(idle_queries, "_MAX_WAIT_SECONDS", _FOREVER)
    with cluster.application(MAP, VALUE="string") as running:
        running.application.start()
        assert until(lambda: _modes(running) == {WatchMode.WATCHED}, TIMEOUT_SECONDS)
        cluster.topics.expand(running.source, 2)
        running.feed(b"1", partition=1)
        assert until(lambda: running.values() == [b"<1>"], TIMEOUT_SECONDS)


def test_input_that_causes_no_signal_is_read_while_the_query_waits(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Transaction markers, and a record in a partition that the application does not know yet."""
    monkeypatch.setattr(idle_queries, "_MAX_WAIT_SECONDS", _FOREVER)
    cluster = attrs.evolve(cluster, check_interval_seconds=_FOREVER)
    with cluster.application(MAP, {"processing.guarantee": "exactly_once_v2"}, VALUE="string") as running:
        running.application.start()
        assert until(lambda: _modes(running) == {WatchMode.WATCHED}, TIMEOUT_SECONDS)
        _abort_transaction(cluster.servers, running.source)
        assert until(lambda: _read_to(running) == {(running.source, 0): 2}, TIMEOUT_SECONDS)
        assert _modes(running) == {WatchMode.WATCHED}
        cluster.topics.expand(running.source, 2)
        running.feed(b"1", partition=1)
        assert until(lambda: running.values() == [b"<1>"], TIMEOUT_SECONDS)


def _read_to(running: RunningApplication) -> Mapping[TopicPartition, int]:
    (query,) = running.application.queries.values()
    return query.read_to


def _abort_transaction(servers: str, topic: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "transactional.id": f"{topic}-aborted"})
    producer.init_transactions(TIMEOUT_SECONDS)
    producer.begin_transaction()
    producer.produce(topic, b"never", partition=0)
    producer.flush(TIMEOUT_SECONDS)
    producer.abort_transaction(TIMEOUT_SECONDS)
