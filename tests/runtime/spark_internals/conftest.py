"""Topics of tests that read records of Kafka with Spark."""

from collections.abc import Callable

import pytest

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater_spark.driver.input.sources import KafkaSource
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark_internals.packed_rows import TwoTopics, plain_records, send_records


@pytest.fixture
def topics(kafka: local.LocalBroker) -> Topics:
    return Topics(kafka.bootstrap_servers)


@pytest.fixture
def source(kafka: local.LocalBroker, unique: Callable[[str], str]) -> KafkaSource:
    topic = unique("packed")
    return KafkaSource(
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        topics=(topic,),
        start_offsets={},
        exactly_once=True,
    )


@pytest.fixture
def two_topics(kafka: local.LocalBroker, topics: Topics, unique: Callable[[str], str]) -> TwoTopics:
    names = sorted((unique("left"), unique("right")))
    topics.create(dict.fromkeys(names, 3))
    for topic in names:
        for partition in range(3):
            send_records(topics, topic, plain_records(50), partition)
    source = KafkaSource(
        connection=Connection(bootstrap_servers=(kafka.bootstrap_servers,)),
        topics=tuple(names),
        start_offsets={},
    )
    return TwoTopics(
        source, {(topic, partition): (partition, 50) for topic in names for partition in range(3)}
    )
