from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.stage import Stage
from toolchain.broker import local


@pytest.fixture
def stage(
    spark: SparkSession, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Stage:
    return Stage(spark, Topics(kafka.bootstrap_servers), kafka.bootstrap_servers, tmp_path, unique)
