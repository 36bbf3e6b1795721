"""What a consumer group has committed is read completely, or not at all."""

import base64
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, KafkaError, Producer, TopicPartition

from headwater.kafka import Connection, group_offsets
from headwater.kafka.group_offsets import read_metadata
from headwater.model.problems import ProblemCode, ProblemsError
from headwater.toolchain.broker.readiness import until
from tests.contract.real_cluster import RealCluster

if TYPE_CHECKING:
    from headwater.toolchain.broker.local import LocalBroker


class Answering:
    """A consumer whose request is answered, with an error for the partitions of one topic."""

    error = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    def __init__(self, _: object) -> None:
        pass

    def committed(self, partitions: Sequence[TopicPartition], _: float) -> list[SimpleNamespace]:
        return [
            SimpleNamespace(
                topic=each.topic,
                partition=each.partition,
                offset=0,
                metadata="text",
                error=self.error if each.topic == "b" else None,
            )
            for each in partitions
        ]

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, ProblemCode.NOT_AUTHORIZED),
        (KafkaError.UNKNOWN_TOPIC_OR_PART, ProblemCode.REQUEST_NOT_ANSWERED),
    ],
)
def test_a_partition_that_cannot_be_read_is_a_problem(
    monkeypatch: pytest.MonkeyPatch, error: int, code: ProblemCode
) -> None:
    """The number of processors may be committed with the offset of this partition only."""
    monkeypatch.setattr(group_offsets, "Consumer", Answering)
    monkeypatch.setattr(Answering, "error", KafkaError(error))
    connection = Connection(bootstrap_servers=("unused:9092",))
    assert read_metadata(connection, "group", {"a": 2}, 1) == ["text", "text"]
    with pytest.raises(ProblemsError) as raised:
        read_metadata(connection, "group", {"a": 2, "b": 1}, 1)
    [problem] = raised.value.problems
    assert problem.code is code
    assert " b" in problem.summary


@pytest.mark.broker
def test_a_text_of_a_later_version_is_one_problem_with_its_partition(
    kafka: "LocalBroker", unique: Callable[[str], str]
) -> None:
    topic, group = unique("in"), unique("group")
    cluster = RealCluster(kafka.bootstrap_servers)
    cluster.create(topic, 2)
    later = base64.b64encode(b"\x04" + bytes(12)).decode()
    cluster.commit(group, topic, {0: "of another program", 1: later})
    connection = Connection(bootstrap_servers=(kafka.bootstrap_servers,))
    with pytest.raises(ProblemsError) as raised:
        read_metadata(connection, group, {topic: 2}, 30)
    [problem] = raised.value.problems
    assert problem.code is ProblemCode.UNREADABLE_RECORD
    assert f"{topic}, partition 1, offset 0" in problem.summary
    assert "version of Headwater" in problem.fix


@pytest.mark.broker
@pytest.mark.every_broker
def test_an_open_transaction_is_not_waited_for(kafka: "LocalBroker", unique: Callable[[str], str]) -> None:
    """That of a client that was killed ends after a minute."""
    servers, topic, group = kafka.bootstrap_servers, unique("in"), unique("group")
    cluster = RealCluster(servers)
    cluster.create(topic, 2)
    cluster.commit(group, topic, {0: "before", 1: "other"})
    producer = Producer({"bootstrap.servers": servers, "transactional.id": group})
    producer.init_transactions(60)
    producer.begin_transaction()
    member = Consumer({"bootstrap.servers": servers, "group.id": group})
    offsets = [TopicPartition(topic, 0, 7, "after")]
    producer.send_offsets_to_transaction(offsets, member.consumer_group_metadata(), 60)
    connection = Connection(bootstrap_servers=(servers,))
    assert read_metadata(connection, group, {topic: 2}, 30) == ["before", "other"]
    producer.commit_transaction(60)
    member.close()
    # The broker answers a commit before the group shows it.
    assert until(lambda: read_metadata(connection, group, {topic: 2}, 30) == ["after", "other"], 60.0)
