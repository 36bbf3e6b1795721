from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.stage import Stage
from toolchain.broker import Broker, Settings, local


@pytest.fixture
def stage(
    spark: SparkSession, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Stage:
    return Stage(spark, Topics(kafka.bootstrap_servers), kafka.bootstrap_servers, tmp_path, unique)


@pytest.fixture(scope="module")
def keeping_broker(own_broker: Callable[..., Broker]) -> Iterator[Broker]:
    """One that keeps everything: recorded timestamps lie years back."""
    never = "86400000"
    forever = {
        "log.cleaner.enable": "false",
        "log.retention.check.interval.ms": never,
        "log.initial.task.delay.ms": never,  # else a first check comes half a minute after the start
    }
    with own_broker(Settings(overrides=forever)) as running:
        yield running
