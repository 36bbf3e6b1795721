"""The Spark session that all tests of a process share."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.toolchain import ensure_spark_jars
from headwater.toolchain.broker import local
from headwater_spark.driver.spark_session.session import SessionSettings, start_session

_ROOT = Path(__file__).parents[2]
_BROKERS = 2


@pytest.fixture(scope="session")
def kafka(shared_broker: Callable[[str], local.LocalBroker]) -> local.LocalBroker:
    """One of two brokers that the tests of the runtime share; workers 0 and 2 run most of these tests.

    They create thousands of topics, and applications read all topics of their cluster twice a second. But
    each broker takes 1 to 2 % of a processor, also while no test uses it.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return shared_broker(f"kafka-of-runtime-{int(worker) // 2 % _BROKERS}")


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
            conf={
                "spark.driver.memory": "1g",
                "spark.ui.enabled": "false",
                "spark.sql.shuffle.partitions": "2",
                # Idle queries ask the broker for new records twenty times a second, not a hundred times.
                "spark.sql.streaming.pollingDelay": "50ms",
                "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
                "spark.log.level": "ERROR",
            },
        )
    )
    yield session
    session.stop()


@pytest.fixture
def generated_code(spark: SparkSession) -> Iterator[None]:
    """Let Spark generate the code of its plans, as it does by default; the test run turns that off."""
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    before = {name: spark.conf.get(name) for name in names}
    for name, value in zip(names, ("true", "FALLBACK"), strict=True):
        spark.conf.set(name, value)
    yield
    for name, former in before.items():
        spark.conf.set(name, str(former))
