"""The producer that tests share writes to topics as they are now."""

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException

from headwater.toolchain.broker.local import LocalBroker
from tests.runtime.spark.kafka_topics import Topics

pytestmark = pytest.mark.broker

_RECORD = (b"k", b"v", 1_700_000_000_000)


def test_the_producer_is_shared_until_topics_are_deleted(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    name = unique("topic")
    first, second = (Topics(kafka.bootstrap_servers, keeps_producer=True) for _ in range(2))
    first.create({name: 1})
    first.put(name, [_RECORD])
    assert second._current_producer() is first._current_producer()
    second.expand(name, 3)
    first.put(name, [_RECORD], 2)
    assert [record[1:3] for record in second.get(name)] == [(0, 0), (2, 0)]
    former = first._current_producer()
    second.delete(name)
    assert first._current_producer() is not former
    first.create({name: 1})
    second.put(name, [_RECORD, _RECORD])
    assert [record[1:3] for record in first.get(name)] == [(0, 0), (0, 1)]


def test_a_producer_is_replaced_after_refused_records(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    name = unique("topic")
    topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
    topics.create({name: 1})
    topics.put(name, [_RECORD])
    former = topics._current_producer()
    with pytest.raises((AssertionError, KafkaException)):
        topics.put(name, [_RECORD], 7)
    assert topics._current_producer() is not former
    topics.put(name, [_RECORD])
    assert len(topics.get(name)) == 2
