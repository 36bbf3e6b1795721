"""The cluster of an application on Spark, and what is printed when its test fails."""

import time
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headwater.toolchain.broker import Broker, Settings, local
from headwater_spark.driver.queries import row_distribution
from tests.runtime.spark.applications import Cluster
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.kept_logs import keep_logs


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep the logs of a test that fails, and name their folder in its report."""
    report = yield
    if report.when == "call" and report.failed:
        folder = getattr(item, "funcargs", {}).get("tmp_path")
        if isinstance(folder, Path):
            # Programs of the test may delete files at this time: an exception here would end the test run.
            with suppress(OSError):
                began = time.time() - call.duration
                brokers = [
                    log.parent
                    for log in folder.parent.glob("kafka*/broker.log")
                    if not log.parent.is_symlink() and log.stat().st_mtime >= began
                ]
                if (kept := keep_logs(item.name, [folder, *brokers])) is not None:
                    report.sections.append(("Logs", f"The whole logs are in {kept}"))
    return report


@pytest.fixture
def cluster(
    spark: SparkSession, kafka: local.LocalBroker, tmp_path: Path, unique: Callable[[str], str]
) -> Cluster:
    topics = Topics(kafka.bootstrap_servers, keeps_producer=True)
    return Cluster(spark, topics, kafka.bootstrap_servers, tmp_path, unique)


@pytest.fixture
def packed_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Spark pack the records of small batches, too: batches of tests are too small otherwise."""
    monkeypatch.setattr(row_distribution, "FEWEST_PACKED", 0)


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
