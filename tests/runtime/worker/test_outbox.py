"""Records that a broker refuses, and a queue that is full, under both guarantees."""

from collections.abc import Callable, Iterator

import attrs
import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException

from infra.observe import Connection
from spark_jobs.runtime.engine.partitioners.checked import TaskMigrated
from spark_jobs.runtime.engine.records import OutputRecord
from spark_jobs.runtime.worker import clients, transaction
from spark_jobs.runtime.worker.transaction import Outbox, PlainOutbox, TransactionalOutbox
from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import local

pytestmark = pytest.mark.broker

_TIME = 1_700_000_000_000
_MARKER = "marker"


@attrs.frozen
class Desk:
    """`sink` takes small records only, `other` any; `exactly_once` says which outboxes there are."""

    topics: Topics
    connection: Connection
    id: str
    reader: Consumer
    exactly_once: bool

    @property
    def sink(self) -> str:
        return f"sink-{self.id}"

    @property
    def other(self) -> str:
        return f"other-{self.id}"

    def open(self) -> Outbox:
        """As each attempt of a task that failed does."""
        made = TransactionalOutbox if self.exactly_once else PlainOutbox
        return made(self.connection, self.id, self.reader)

    def commits(self, offset: int) -> transaction.Commits:
        return {(f"in-{self.id}", 0): (offset, _MARKER)}

    def committed(self) -> tuple[int, str | None] | None:
        (found,) = clients.committed(self.reader, [(f"in-{self.id}", 0)])
        return None if found.offset < 0 else (found.offset, found.metadata)

    def values(self, topic: str) -> list[bytes | None]:
        return [record[5] for record in self.topics.get(topic)]


def record(topic: str, value: bytes, partition: int | None = 0) -> OutputRecord:
    return (topic, partition, b"k", value, _TIME, ())


@pytest.fixture(params=[True, False], ids=["exactly once", "at least once"])
def desk(
    request: pytest.FixtureRequest, kafka: local.LocalBroker, unique: Callable[[str], str]
) -> Iterator[Desk]:
    id_ = unique("outbox")
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    reader = clients.consumer(connection, id_)
    made = Desk(Topics(kafka.bootstrap_servers), connection, id_, reader, exactly_once=request.param)
    made.topics.create({made.other: 1, f"in-{id_}": 1})
    made.topics.create({made.sink: 1}, {"max.message.bytes": "500"})
    yield made
    reader.close()


def test_the_first_instant_of_all_is_not_taken_for_now(desk: Desk) -> None:
    box = desk.open()
    box.send([(desk.other, 0, b"k", b"v", 0, ()), (desk.other, 0, b"k", b"v", 0, (("name", b"x"),))])
    box.commit(desk.commits(2))
    assert [record[3] for record in desk.topics.get(desk.other)] == [1, 1]


def test_a_record_that_is_refused_fails_the_batch_and_the_next_attempt_is_clean(desk: Desk) -> None:
    failing = desk.open()
    failing.send([record(desk.other, b"one"), record(desk.sink, b"x" * 2_000)])
    with pytest.raises(KafkaException):
        failing.commit(desk.commits(5))
    failing.abort()
    assert desk.committed() is None
    assert desk.values(desk.sink) == []
    # What was sent is taken back by a transaction alone.
    held = [] if desk.exactly_once else [b"one"]
    assert desk.values(desk.other) == held

    again = desk.open()
    again.send([record(desk.other, b"one"), record(desk.sink, b"small")])
    again.commit(desk.commits(5))
    assert desk.committed() == (5, _MARKER)
    assert desk.values(desk.sink) == [b"small"]
    assert desk.values(desk.other) == [*held, b"one"]


def test_one_outbox_goes_on_from_batch_to_batch(desk: Desk) -> None:
    kept = desk.open()
    for offset in (1, 2):
        kept.send([record(desk.other, b"%d" % offset)])
        kept.commit(desk.commits(offset))
        assert desk.committed() == (offset, _MARKER)
    assert desk.values(desk.other) == [b"1", b"2"]


def test_the_refusal_is_told_with_its_topic(desk: Desk) -> None:
    failing = desk.open()
    failing.send([record(desk.sink, b"x" * 2_000)])
    with pytest.raises(KafkaException) as raised:
        failing.commit(desk.commits(5))
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert desk.sink in str(raised.value)


def test_a_record_that_the_client_refuses_fails_at_once(desk: Desk) -> None:
    """librdkafka does not queue what brokers do not take by default."""
    failing = desk.open()
    with pytest.raises(KafkaException) as raised:
        failing.send([record(desk.other, b"x" * 2_000_000)])
    assert raised.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    failing.abort()
    assert desk.committed() is None


def test_a_record_of_what_brokers_take_at_most_by_default_is_written(desk: Desk) -> None:
    value = b"x" * 1_048_000
    large = desk.open()
    large.send([record(desk.other, value)])
    large.commit(desk.commits(1))
    assert desk.values(desk.other) == [value]


def test_more_records_than_the_queue_holds_arrive_in_order(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        transaction, "_SETTINGS", {**transaction._SETTINGS, "queue.buffering.max.messages": 10}
    )
    values = [b"%d" % number for number in range(100)]
    full = desk.open()
    assert full.send(record(desk.other, value) for value in values) == 100
    full.commit(desk.commits(100))
    assert desk.values(desk.other) == values


def test_a_partition_may_come_while_an_outbox_is_open(desk: Desk) -> None:
    kept = desk.open()
    kept.send([record(desk.other, b"first")])
    with pytest.raises(TaskMigrated) as raised:
        kept.send([record(desk.other, b"second", partition=1)])
    assert (raised.value.topic, raised.value.partition, raised.value.num_partitions) == (desk.other, 1, 1)
    desk.topics.expand(desk.other, 2)
    kept.send([record(desk.other, b"second", partition=1)])
    kept.commit(desk.commits(2))
    assert desk.values(desk.other) == [b"first", b"second"]
