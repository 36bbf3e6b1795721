"""Topics of tests that read records of Kafka with Spark."""

from collections.abc import Callable

import pytest

from headwater.kafka import Connection
from headwater.toolchain.broker import local
from headwater_spark.driver.input.sources import KafkaSource
from headwater_spark.spark_internals import packing
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark_internals.packed_rows import RECORDS_AT_ONCE, TwoTopics, plain_records, send_records


@pytest.fixture
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pack fewer records in a row: then few records are several rows."""
    monkeypatch.setattr(packing, "_RECORDS_AT_ONCE", RECORDS_AT_ONCE)


@pytest.fixture
def topics(kafka: local.LocalBroker) -> Topics:
    return Topics(kafka.bootstrap_servers, keeps_producer=True)


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
