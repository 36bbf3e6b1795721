"""Several partitions are read at the same time, and later what is newer."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing

import pytest

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater.toolchain.broker.readiness import until
from headwater_spark.worker import clients
from headwater_spark.worker.partition_reader import PartitionFollower
from headwater_spark.worker.transaction import TransactionalProducer
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker

_SECONDS = 90.0


class _Partitions:
    """A topic with two partitions, a producer, and what a follower has read."""

    def __init__(self, servers: str, topic: str) -> None:
        self.connection = connection = Connection(bootstrap_servers=(servers,))
        self.topics = Topics(servers)
        self.topics.create({topic: 2})
        self.topic = topic
        self.reader = clients.create_consumer(connection, topic)
        self.producer = TransactionalProducer(connection, topic, self.reader)
        self.follower = PartitionFollower(connection, topic)
        self.positions = {(topic, 0): 0, (topic, 1): 0}

    def write(self, partition: int, *values: bytes) -> None:
        """Write a record for each value in one transaction; wait until consumers may read it."""
        self.producer.send((self.topic, partition, b"k", value, 1, ()) for value in values)
        self.producer.commit({})
        assert until(lambda: self.topics.is_settled(self.topic), _SECONDS)

    def abort(self, partition: int, value: bytes) -> None:
        self.producer.send([(self.topic, partition, b"k", value, 1, ())])
        self.producer.abort()
        self.producer = TransactionalProducer(self.connection, self.topic, self.reader)

    def read(self) -> Mapping[int, list[bytes | None]]:
        """Return partition → the values that are read from the positions."""
        found: dict[int, list[bytes | None]] = defaultdict(list)
        for (topic, partition), chunk in self.follower.read(self.positions):
            found[partition] += [record[5] for record in chunk.records]
            self.positions[topic, partition] = chunk.next_offset
        return {partition: values for partition, values in found.items() if values}

    def close(self) -> None:
        self.follower.close()
        self.reader.close()


@pytest.fixture
def partitions(kafka: local.LocalBroker, unique: Callable[[str], str]) -> Iterator[_Partitions]:
    with closing(_Partitions(kafka.bootstrap_servers, unique("followed"))) as made:
        yield made


def test_each_committed_record_is_read_once(partitions: _Partitions) -> None:
    assert partitions.read() == {}
    partitions.write(0, b"a", b"b")
    partitions.write(1, b"c")
    assert partitions.read() == {0: [b"a", b"b"], 1: [b"c"]}
    assert partitions.read() == {}
    partitions.abort(1, b"aborted")
    partitions.write(1, b"d")
    assert partitions.read() == {1: [b"d"]}
    bounds = clients.read_bounds(partitions.reader, partitions.positions)
    assert {each: end for each, (_, end) in bounds.items()} == partitions.positions


def test_a_read_that_was_not_completed_begins_again(partitions: _Partitions) -> None:
    partitions.write(0, b"a")
    partitions.write(1, b"b")
    next(iter(partitions.follower.read(partitions.positions)))
    assert partitions.read() == {0: [b"a"], 1: [b"b"]}


def test_earlier_records_are_read_again_if_the_caller_starts_there(partitions: _Partitions) -> None:
    partitions.write(0, b"a", b"b")
    partitions.write(1, b"c")
    partitions.read()
    partitions.positions[partitions.topic, 0] = 1
    assert partitions.read() == {0: [b"b"]}


def test_deleted_records_are_skipped(partitions: _Partitions) -> None:
    partitions.write(0, b"a", b"b")
    partitions.read()
    partitions.write(0, b"c", b"d")
    end = partitions.positions[partitions.topic, 0]
    partitions.topics.delete_records(partitions.topic, end + 1)
    assert partitions.read() == {0: [b"d"]}
