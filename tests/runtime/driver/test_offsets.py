"""End offsets while transactions are being committed."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater_spark.driver.layout import OffsetReset, ResetKind
from headwater_spark.driver.offsets import Backlog, GroupOffsets
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker


@pytest.fixture
def topic(kafka: local.LocalBroker, unique: Callable[[str], str]) -> str:
    name = unique("ends")
    Topics(kafka.bootstrap_servers).create({name: 1})
    return name


@pytest.fixture
def offsets(kafka: local.LocalBroker, topic: str) -> Iterator[GroupOffsets]:
    offsets = GroupOffsets(Connection(bootstrap_servers=(kafka.bootstrap_servers,)), topic)
    yield offsets
    offsets.close()


def test_stable_end_offset_waits_for_open_transactions(
    kafka: local.LocalBroker, topic: str, offsets: GroupOffsets
) -> None:
    partition = (topic, 0)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"one")
    producer.produce(topic, b"two")
    producer.flush()
    assert offsets.end_offsets([partition]) == {partition: 0}
    with pytest.raises(KafkaException, match=r"transactions are open after 0\.1 s"):
        offsets.stable_end_offsets([partition], 0.1)
    with ThreadPoolExecutor(1) as pool:
        stable = pool.submit(offsets.stable_end_offsets, [partition], 60.0)
        producer.commit_transaction(60)
        assert stable.result() == {partition: 3}, "two records and the transaction marker"


def test_ends_of_partitions_that_were_just_added_are_found(
    kafka: local.LocalBroker, topic: str, offsets: GroupOffsets
) -> None:
    topics = Topics(kafka.bootstrap_servers)
    topics.put(topic, [(b"k", b"v", 0)])
    assert offsets.end_offsets([(topic, 0)]) == {(topic, 0): 1}
    topics.expand(topic, 3)
    partitions = [(topic, each) for each in range(3)]
    expected = {(topic, 0): 1, (topic, 1): 0, (topic, 2): 0}
    assert offsets.end_offsets(partitions) == expected
    assert offsets.written_end_offsets(partitions) == expected
    assert offsets.stable_end_offsets(partitions) == expected


def test_start_offsets_and_lag_do_not_wait_for_the_transaction_of_a_killed_client(
    kafka: local.LocalBroker, topic: str, offsets: GroupOffsets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client that is killed while it commits leaves its transaction open for a minute.

    Its driver stops sooner than that, so it must not wait for the lag either.
    """
    partition = (topic, 0)
    offsets._commit({partition: 0})
    reader = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": topic})
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([TopicPartition(topic, 0, 1)], reader.consumer_group_metadata(), 60)
    with monkeypatch.context() as patched:
        patched.setattr("headwater_spark.worker.clients.REQUEST_SECONDS", 5.0)
        with pytest.raises(KafkaException):
            offsets.committed([partition])
    resets = {partition: OffsetReset(ResetKind.EARLIEST)}
    assert offsets.start_offsets(resets, 0, {}, {}) == {partition: 0}
    assert offsets.last_committed([partition]) == {partition: 0}
    assert offsets.read_backlogs({"0": [partition]}, {}) == {"0": Backlog(lag=0, committed=0)}
    producer.abort_transaction(60)
    reader.close()


def test_transaction_markers_after_the_last_batch_are_no_backlog(
    kafka: local.LocalBroker, topic: str, offsets: GroupOffsets
) -> None:
    """No task gets a record there, so none commits an offset; a lag would look like a stalled query."""
    partition = (topic, 0)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, b"one")
    producer.commit_transaction(60)
    offsets.stable_end_offsets([partition], 60)
    offsets._commit({partition: 1})
    assert offsets.read_backlogs({"0": [partition]}, {}) == {"0": Backlog(lag=1, committed=1)}
    assert offsets.read_backlogs({"0": [partition]}, {partition: 2}) == {"0": Backlog(lag=0, committed=1)}
    producer.begin_transaction()
    producer.produce(topic, b"two")
    producer.commit_transaction(60)
    offsets.stable_end_offsets([partition], 60)
    assert offsets.read_backlogs({"0": [partition], "1": []}, {partition: 2}) == {
        "0": Backlog(lag=2, committed=1),
        "1": Backlog(lag=0, committed=0),
    }


def test_stable_end_offset_without_transactions_is_returned_at_once(
    kafka: local.LocalBroker, topic: str, offsets: GroupOffsets
) -> None:
    Topics(kafka.bootstrap_servers).put(topic, [(b"k", b"v", 1)], 0)
    assert offsets.stable_end_offsets([(topic, 0)], 0) == {(topic, 0): 1}
    assert offsets.stable_end_offsets([]) == {}
