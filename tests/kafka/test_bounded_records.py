"""Records that are too large for memory, and many small ones, on a broker that accepts both."""

import gzip
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

from headwater.change.ownership import write_ownership
from headwater.kafka import Connection, KafkaClusterReader
from headwater.kafka.bounded_records import BoundedTopic
from headwater.kafka.client_settings import client_log
from headwater.model.records import (
    OWNERSHIP_TOPIC,
    RECORD_TOPIC_SETTINGS,
    OwnershipChange,
    OwnershipRecord,
    StackIdentity,
)
from headwater.model.untrusted import LARGEST_VALUE, UnreadReason, UnreadRecord
from headwater.toolchain.broker.launch import Settings
from headwater.toolchain.broker.process import Broker
from tests.contract.real_cluster import RealCluster

pytestmark = pytest.mark.broker

_BROKER_LIMIT = 150_000_000
_LARGE = 60_000_000
_MOST_UNSENT = 50_000
"""Half of what the queue of a producer holds: a busy broker takes records more slowly than they are made."""
_READER = """
import json, re, sys
from headwater.kafka.bounded_records import BoundedTopic
from headwater.kafka.client_settings import client_log
from headwater.model.untrusted import UnreadRecord

def peak():
    with open("/proc/self/status") as status:  # ru_maxrss includes the process before exec
        return int(re.search(r"VmHWM:\\s+(\\d+)", status.read())[1]) // 1024

servers, topic = sys.argv[1:]
settings = {"bootstrap.servers": servers, "group.id": topic, "logger": client_log()}
before = peak()
found, number = [], 0
for number, each in enumerate(BoundedTopic(settings, topic, 0, 15.0).records(), start=1):
    if number <= 10:
        what = each.reason.name if isinstance(each, UnreadRecord) else str(len(each.value))
        found.append((each.offset, what))
print(json.dumps([found + [(number, "in all")], peak() - before]))
"""
_LIMITS = {"message.max.bytes": str(_BROKER_LIMIT), "socket.request.max.bytes": str(2 * _BROKER_LIMIT)}


@pytest.fixture(scope="module")
def broker(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    with own_broker(Settings(heap_mb=768, overrides=_LIMITS)) as broker:
        yield broker


@pytest.fixture(scope="module")
def cluster(broker: Broker) -> RealCluster:
    return RealCluster(broker.bootstrap_servers)


def send(cluster: RealCluster, topic: str, *batches: list[bytes], codec: str = "none") -> None:
    """Send each list of values as one batch; the key of a record is its position in the batch."""
    for values in batches:
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap_servers,
                "message.max.bytes": _BROKER_LIMIT,
                "batch.size": _BROKER_LIMIT,
                "linger.ms": 60_000,  # until flush
                "compression.type": codec,
            }
        )
        for number, value in enumerate(values):
            producer.produce(topic, value, b"key-%d" % number)
        assert producer.flush(60) == 0


def bounded(cluster: RealCluster, topic: str, seconds: float = 60) -> BoundedTopic:
    settings = {"bootstrap.servers": cluster.bootstrap_servers, "group.id": topic, "logger": client_log()}
    return BoundedTopic(settings, topic, 0, seconds)


def found(topic: BoundedTopic, end: int | None = None) -> list[tuple[int, object]]:
    return [
        (each.offset, each.reason if isinstance(each, UnreadRecord) else each.value)
        for each in topic.records(end)
    ]


def read_in_new_process(cluster: RealCluster, topic: str) -> tuple[list[tuple[int, str]], int]:
    """Return offsets with reason or size, and the memory in MB: the peak of this process is too high."""
    program = [sys.executable, "-c", _READER, cluster.bootstrap_servers, topic]
    done = subprocess.run(program, capture_output=True, text=True, check=True, timeout=100)
    records, growth = json.loads(done.stdout)
    return [(offset, what) for offset, what in records], growth


def test_one_record_of_60_mb_is_skipped_with_its_offset(
    cluster: RealCluster, unique: Callable[[str], str]
) -> None:
    topic = unique("large")
    cluster.create(topic, 1, {"cleanup.policy": "compact"})
    large = os.urandom(_LARGE)
    send(cluster, topic, [b"a"], [large], [large], [b"b"], [b"c"], [large])
    del large
    began = time.monotonic()
    assert found(bounded(cluster, topic)) == [
        (0, b"a"),
        (1, UnreadReason.TOO_LARGE),
        (3, b"b"),
        (4, b"c"),
        (5, UnreadReason.TOO_LARGE),
    ]
    assert time.monotonic() - began < 60
    assert read_in_new_process(cluster, topic)[1] < 40
    assert found(bounded(cluster, topic), end=4)[-1] == (3, b"b")
    assert found(bounded(cluster, topic), end=3)[-1] == (1, UnreadReason.TOO_LARGE)


def test_a_batch_of_many_records_that_is_too_large_is_skipped_as_a_whole(
    cluster: RealCluster, unique: Callable[[str], str]
) -> None:
    topic = unique("batch")
    cluster.create(topic, 1)
    send(cluster, topic, [b"a"], [os.urandom(100_000) for _ in range(100)], [b"b"])
    records = list(bounded(cluster, topic).records())
    assert [each.offset for each in records] == [0, 1, 101]
    assert isinstance(records[1], UnreadRecord)
    assert records[1].last_offset == 100
    assert records[1].location == f"{topic}, partition 0, one of the offsets 1 to 100"
    assert read_in_new_process(cluster, topic)[1] < 40


@pytest.mark.parametrize(
    ("codec", "memory"),
    [("zstd", 40), ("lz4", 250), pytest.param("gzip", 250, marks=pytest.mark.soak)],  # as lz4
)
def test_a_small_batch_that_is_large_when_decompressed_does_not_end_the_reading(
    cluster: RealCluster, unique: Callable[[str], str], codec: str, memory: int
) -> None:
    topic = unique("bomb")
    cluster.create(topic, 1)
    send(cluster, topic, [b"a"])
    send(cluster, topic, [b"[" * 100_000_000], codec=codec)
    send(cluster, topic, [b"b"])
    offsets = found(bounded(cluster, topic))
    assert [offset for offset, _ in offsets] == [0, 1, 2]
    assert offsets[2] == (2, b"b")
    assert read_in_new_process(cluster, topic)[1] < memory, "librdkafka limits only zstd"


def test_many_small_records_are_read_with_little_memory(
    cluster: RealCluster, unique: Callable[[str], str]
) -> None:
    """The time limit is for one record, not for all: 200,000 records take longer."""
    topic = unique("flood")
    cluster.create(topic, 1, {"cleanup.policy": "compact"})
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "linger.ms": 50})
    for number in range(200_000):
        producer.produce(topic, b"x" * 100, b"key-%d" % number)
        while len(producer) >= _MOST_UNSENT:
            producer.poll(1)
    assert producer.flush(60) == 0
    assert sum(1 for _ in bounded(cluster, topic, seconds=10).records()) == 200_000
    found, growth = read_in_new_process(cluster, topic)
    assert found[-1] == (200_000, "in all")
    assert growth < 80


def test_brokers_refuse_records_beyond_the_size_that_is_read_also_compressed_ones(
    cluster: RealCluster, unique: Callable[[str], str]
) -> None:
    topic = unique("limited")
    cluster.create(topic, 1, RECORD_TOPIC_SETTINGS)
    large = b"[" * (LARGEST_VALUE + 1)
    assert len(gzip.compress(large)) < 10_000
    for codec in ("none", "gzip", "zstd"):
        with pytest.raises(AssertionError, match="refused"):
            deliver(cluster, topic, large, codec)
    send(cluster, topic, [b"[" * (LARGEST_VALUE // 2)], codec="gzip")
    assert [offset for offset, _ in found(bounded(cluster, topic))] == [0]


def deliver(cluster: RealCluster, topic: str, value: bytes, codec: str) -> None:
    refused = []
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "message.max.bytes": _BROKER_LIMIT,
            "compression.type": codec,
        }
    )
    producer.produce(topic, value, b"key", on_delivery=lambda error, _: refused.append(error))
    producer.flush(90)
    assert [error for error in refused if error is not None] == [], "refused"


def test_ownership_records_around_a_large_record_are_used(
    cluster: RealCluster, request: pytest.FixtureRequest
) -> None:
    record = OwnershipRecord(application_id="orders", stack=StackIdentity("0d6a", "production"))
    request.addfinalizer(lambda: cluster.delete(OWNERSHIP_TOPIC))
    cluster.create(OWNERSHIP_TOPIC, 1, {"cleanup.policy": "compact", "max.message.bytes": str(_BROKER_LIMIT)})
    connection = Connection(bootstrap_servers=(cluster.bootstrap_servers,))
    write_ownership(connection, OwnershipChange((record,)))
    send(cluster, OWNERSHIP_TOPIC, [os.urandom(_LARGE)], [b"{"])
    other = OwnershipRecord(application_id="sales", stack=StackIdentity("0d6a", "production"))
    write_ownership(connection, OwnershipChange((other,)))
    log = KafkaClusterReader(connection).read_ownership()
    assert log.records == (record, other)
    assert [(each.offset, each.reason) for each in log.unread] == [
        (1, UnreadReason.TOO_LARGE),
        (2, UnreadReason.NOT_OURS),
    ]
