"""The producers of both guarantees: refused records, full queues, new partitions."""

import time
from collections.abc import Callable, Iterator

import attrs
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.records import Commits, OutputRecord
from headwater_spark.worker import clients, record_sender, transaction
from headwater_spark.worker.record_sender import RecordsRefusedError
from headwater_spark.worker.transaction import AtLeastOnceProducer, TaskProducer, TransactionalProducer
from tests.runtime.spark.kafka_topics import Topics

pytestmark = [pytest.mark.broker, pytest.mark.every_broker]

_TIME = 1_700_000_000_000
_METADATA = "metadata"
_MANY = 30_000
"""Records whose sending takes longer than the answer to the first request."""
_EXACTLY_ONCE = pytest.mark.parametrize("cluster", [True], indirect=True, ids=["exactly once"])


@attrs.frozen
class Cluster:
    """`small_sink` accepts small records only, `sink` any; `exactly_once` chooses the producer."""

    topics: Topics
    connection: Connection
    id: str
    reader: Consumer
    exactly_once: bool

    @property
    def small_sink(self) -> str:
        return f"small-sink-{self.id}"

    @property
    def sink(self) -> str:
        return f"sink-{self.id}"

    def open(self, *, single: bool = False) -> TaskProducer:
        """Open a producer, as each attempt of a failed task does."""
        producer = TransactionalProducer if self.exactly_once else AtLeastOnceProducer
        return producer(self.connection, self.id, self.reader, single=single)

    def commits(self, offset: int) -> Commits:
        return {(f"in-{self.id}", 0): (offset, _METADATA)}

    def committed(self) -> tuple[int, str | None] | None:
        (found,) = clients.read_committed(self.reader, [(f"in-{self.id}", 0)])
        return None if found.offset < 0 else (found.offset, found.metadata)

    def values(self, topic: str) -> list[bytes | None]:
        return [record[5] for record in self.topics.get(topic)]


def record(topic: str, value: bytes, partition: int | None = 0) -> OutputRecord:
    return (topic, partition, b"k", value, _TIME, ())


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def cluster(
    request: pytest.FixtureRequest, kafka: local.LocalBroker, unique: Callable[[str], str]
) -> Iterator[Cluster]:
    id_ = unique("producer")
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    reader = clients.create_consumer(connection, id_)
    made = Cluster(Topics(kafka.bootstrap_servers), connection, id_, reader, exactly_once=request.param)
    made.topics.create({made.sink: 1, f"in-{id_}": 1})
    made.topics.create({made.small_sink: 1}, {"max.message.bytes": "500"})
    yield made
    reader.close()


def test_timestamp_zero_is_not_replaced_by_the_current_time(cluster: Cluster) -> None:
    producer = cluster.open()
    producer.send([(cluster.sink, 0, b"k", b"v", 0, ()), (cluster.sink, 0, b"k", b"v", 0, (("name", b"x"),))])
    producer.commit(cluster.commits(2))
    assert [record[3] for record in cluster.topics.get(cluster.sink)] == [1, 1]


def test_refused_record_fails_the_batch_and_the_next_attempt_is_clean(cluster: Cluster) -> None:
    failing = cluster.open()
    failing.send([record(cluster.sink, b"one"), record(cluster.small_sink, b"x" * 2_000)])
    with pytest.raises(KafkaException):
        failing.commit(cluster.commits(5))
    failing.abort()
    assert cluster.committed() is None
    assert cluster.values(cluster.small_sink) == []
    # Only a transaction takes sent records back.
    kept = [] if cluster.exactly_once else [b"one"]
    assert cluster.values(cluster.sink) == kept

    again = cluster.open()
    again.send([record(cluster.sink, b"one"), record(cluster.small_sink, b"small")])
    again.commit(cluster.commits(5))
    assert cluster.committed() == (5, _METADATA)
    assert cluster.values(cluster.small_sink) == [b"small"]
    assert cluster.values(cluster.sink) == [*kept, b"one"]


@_EXACTLY_ONCE
def test_abort_does_not_wait_for_the_records_behind_a_refused_one(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It depends on the moment whether requests are under way, so there are several attempts."""
    monkeypatch.setattr(transaction, "_ABORT_SECONDS", 60.0)
    monkeypatch.setattr(clients, "REQUEST_SECONDS", 60.0)
    large, small = record(cluster.small_sink, b"x" * 2_000), record(cluster.small_sink, b"small")
    for _ in range(6):
        failing = cluster.open(single=True)
        with pytest.raises(RecordsRefusedError):  # noqa: PT012 - either call may notice it
            failing.send([large, *([small] * _MANY)])
            failing.commit(cluster.commits(5))
        started = time.monotonic()
        failing.abort()
        assert time.monotonic() - started < 30.0
    assert cluster.committed() is None

    again = cluster.open(single=True)
    again.send([record(cluster.small_sink, b"again")])
    again.commit(cluster.commits(6))
    assert cluster.committed() == (6, _METADATA)
    assert cluster.values(cluster.small_sink) == [b"again"]


@_EXACTLY_ONCE
def test_next_producer_finishes_an_abort_that_timed_out(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = cluster.open()
    failing.send([record(cluster.sink, b"one")])
    with monkeypatch.context() as patched:
        patched.setattr(transaction, "_ABORT_SECONDS", 0.001)
        failing.abort()
    again = cluster.open()
    again.send([record(cluster.sink, b"two")])
    again.commit(cluster.commits(2))
    assert cluster.values(cluster.sink) == [b"two"]


def test_one_producer_commits_batch_after_batch(cluster: Cluster) -> None:
    kept = cluster.open()
    for offset in (1, 2):
        kept.send([record(cluster.sink, b"%d" % offset)])
        kept.commit(cluster.commits(offset))
        assert cluster.committed() == (offset, _METADATA)
    assert cluster.values(cluster.sink) == [b"1", b"2"]


def test_failure_names_the_topic_of_the_refused_record(cluster: Cluster) -> None:
    failing = cluster.open()
    failing.send([record(cluster.small_sink, b"x" * 2_000)])
    with pytest.raises(KafkaException) as raised:
        failing.commit(cluster.commits(5))
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert cluster.small_sink in str(raised.value)


def test_record_that_the_client_refuses_fails_at_once(cluster: Cluster) -> None:
    """librdkafka does not queue records above the brokers' default limit."""
    failing = cluster.open()
    with pytest.raises(KafkaException) as raised:
        failing.send([record(cluster.sink, b"x" * 2_000_000)])
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    failing.abort()
    assert cluster.committed() is None


def test_record_of_the_largest_default_size_is_written(cluster: Cluster) -> None:
    value = b"x" * 1_048_000
    large = cluster.open()
    large.send([record(cluster.sink, value)])
    large.commit(cluster.commits(1))
    assert cluster.values(cluster.sink) == [value]


def test_more_records_than_the_queue_holds_are_written_in_order(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        record_sender, "_SETTINGS", {**record_sender._SETTINGS, "queue.buffering.max.messages": 10}
    )
    values = [b"%d" % number for number in range(100)]
    full = cluster.open()
    assert full.send(record(cluster.sink, value) for value in values) == 100
    full.commit(cluster.commits(100))
    assert cluster.values(cluster.sink) == values


def test_open_producer_writes_to_a_new_partition(cluster: Cluster) -> None:
    kept = cluster.open()
    kept.send([record(cluster.sink, b"first")])
    with pytest.raises(TaskMigrated) as raised:
        kept.send([record(cluster.sink, b"second", partition=1)])
    assert (raised.value.topic, raised.value.partition, raised.value.num_partitions) == (cluster.sink, 1, 1)
    cluster.topics.expand(cluster.sink, 2)
    kept.send([record(cluster.sink, b"second", partition=1)])
    kept.commit(cluster.commits(2))
    assert cluster.values(cluster.sink) == [b"first", b"second"]
