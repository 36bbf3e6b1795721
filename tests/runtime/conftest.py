"""The Spark session that all tests of a process share."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.runtime.driver.session import SessionSettings, start_session
from toolchain import ensure_spark_jars

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def spark_jars() -> tuple[str, ...]:
    return tuple(map(str, ensure_spark_jars()))


@pytest.fixture(scope="session")
def spark(spark_jars: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """Return a small session: four slots, no user interface. The application id identifies queries."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
    session = start_session(
        SessionSettings(
            application="headwater tests",
            master="local[4]",
            jars=spark_jars,
            shuffle_partitions=2,
            conf={
                "spark.driver.memory": "1g",
                "spark.ui.enabled": "false",
                # Idle queries ask the broker for new records twenty times a second, not a hundred times.
                "spark.sql.streaming.pollingDelay": "50ms",
                "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
                "spark.log.level": "ERROR",
            },
        )
    )
    yield session
    session.stop()
