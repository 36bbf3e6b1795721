from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.spark.applications import Cluster
from tests.runtime.spark.kafka_topics import Topics
from toolchain.broker import Broker, Settings, local


@pytest.fixture
def cluster(
    spark: SparkSession, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Cluster:
    topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
    return Cluster(spark, topics, kafka.bootstrap_servers, tmp_path, unique)


@pytest.fixture(scope="session")
def keeping_broker(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    """Start a broker that deletes no records: recorded timestamps are years old."""
    never = "86400000"
    forever = {
        "log.cleaner.enable": "false",
        "log.retention.check.interval.ms": never,
        "log.initial.task.delay.ms": never,  # the first check would run half a minute after the start
    }
    with own_broker(Settings(overrides=forever)) as running:
        yield running
