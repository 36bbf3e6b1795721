"""How many replicas in sync the brokers require: no more than a topic has (`required_in_sync`)."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaError, Message, Producer
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not exported explicitly
    AdminClient,
    NewTopic,
)

from headwater.model.cluster import required_in_sync
from headwater.toolchain.broker.local import LocalBroker


@pytest.mark.broker
@pytest.mark.every_broker
def test_writes_succeed_with_fewer_replicas_than_min_insync_replicas(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    topic = unique("in-sync")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, 1, 1, config={"min.insync.replicas": "2"})])
    created[topic].result(60)
    failures: list[KafkaError | None] = []

    def report(failure: KafkaError | None, _: Message) -> None:
        failures.append(failure)

    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "acks": "all", "retries": 0})
    producer.produce(topic, b"value", on_delivery=report)
    assert producer.flush(60) == 0
    assert (failures, required_in_sync(2, 1)) == ([None], 1)
