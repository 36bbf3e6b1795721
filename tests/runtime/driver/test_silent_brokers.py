"""A move of state does not wait forever for brokers that send nothing, although they answered before."""

from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest
from confluent_kafka import KafkaException, TopicPartition

from headwater.kafka import Connection
from headwater_spark.driver.processor_move.kafka_cluster import KafkaMoveCluster
from headwater_spark.worker import clients

_CONNECTION = Connection(bootstrap_servers=("unused:9092",))
_END = 5


class _SilentConsumer:
    """Knows the offsets of a partition with records, and receives none of them."""

    def offsets_for_times(self, partitions: Sequence[TopicPartition], _: float) -> list[TopicPartition]:
        ends = {clients.EARLIEST: 0, clients.LATEST: _END}
        return [TopicPartition(each.topic, each.partition, ends[each.offset]) for each in partitions]

    def get_watermark_offsets(self, _partition: TopicPartition, _seconds: float) -> tuple[int, int]:
        return 0, _END

    def assign(self, partitions: Sequence[TopicPartition]) -> None: ...

    def consume(self, _number: int, timeout: float) -> list[object]:  # noqa: ARG002 - as the real one
        return []

    def close(self) -> None: ...


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[KafkaMoveCluster]:
    monkeypatch.setattr(clients, "create_consumer", lambda *_: _SilentConsumer())
    monkeypatch.setattr(clients, "REQUEST_SECONDS", 0.2)
    with closing(KafkaMoveCluster(_CONNECTION, "app")) as found:
        yield found


def test_a_partition_is_not_read(cluster: KafkaMoveCluster) -> None:
    with pytest.raises(KafkaException, match=r"no record has arrived for 0\.2 s"):
        list(cluster.read("in", 0))


def test_several_partitions_are_not_followed(cluster: KafkaMoveCluster) -> None:
    with pytest.raises(KafkaException, match=r"no record has arrived for 0\.2 s"):
        list(cluster.follower().read({("in", 0): 0, ("in", 1): _END}))
