"""The lag of a consumer group."""

from collections.abc import Callable, Mapping

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # public, but not exported explicitly
from prometheus_client import CollectorRegistry, generate_latest

from headwater.agent.lag import LagWatch, group_lag
from headwater.kafka import Connection
from headwater.toolchain.broker.local import LocalBroker
from headwater.toolchain.broker.readiness import until


@pytest.mark.broker
def test_lag_is_end_offset_minus_committed_offset(kafka: LocalBroker, unique: Callable[[str], str]) -> None:
    group, orders, refunds = unique("orders-app"), unique("orders"), unique("refunds")
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for future in admin.create_topics([NewTopic(orders, 2, 1), NewTopic(refunds, 1, 1)]).values():
        future.result(90)
    _write(kafka, {orders: 10, refunds: 4})
    topics = {orders: 2, refunds: 1}
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0}
    assert group_lag(settings, group, topics) == {}
    _commit(kafka, group, [TopicPartition(orders, 0, 3), TopicPartition(refunds, 0, 4)])
    assert group_lag(settings, group, topics) == {orders: 7, refunds: 0}

    registry = CollectorRegistry()
    watch = LagWatch(
        Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        registry,
        "agent-1",
        lambda: {group: topics, unique("never-ran"): topics, unique("without-topics"): {}},
        period_seconds=1,
    )
    with watch:
        sample = f'headwater_agent_consumer_lag{{application_id="{group}",topic="{orders}"}} 7.0'
        assert until(lambda: sample in generate_latest(registry).decode(), 90)
    assert "never-ran" not in generate_latest(registry).decode()


def _write(kafka: LocalBroker, records: Mapping[str, int]) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
    for topic, count in records.items():
        for _ in range(count):
            producer.produce(topic, value=b"x", partition=0)
    assert producer.flush(90) == 0


def _commit(kafka: LocalBroker, group: str, offsets: list[TopicPartition]) -> None:
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "log_level": 0})
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()
