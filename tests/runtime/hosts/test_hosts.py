"""An application on several hosts: its tasks stay where they are, and its results are as guaranteed."""

import os
import random
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from headwater.kafka import Connection
from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.offsets import GroupOffsets
from tests.runtime.hosts.cluster import START_SECONDS, Driver, SparkHosts, new_application, spark_hosts
from tests.runtime.hosts.faults import cause, series
from tests.runtime.hosts.network import reason_to_skip
from tests.runtime.spark.process_application import ProcessApplication

_REASON = reason_to_skip()
pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]

_RECORDS, _BATCH = 1_000, 50
_TASKS = 4
"""Two sub-topologies with two tasks each."""
_INPUTS = ("in", "counted-counts-repartition")
_Open = Callable[[str], AbstractContextManager[tuple[SparkHosts, ProcessApplication]]]


@pytest.fixture
def open_application(
    kafka_distribution: KafkaDistribution, spark_jars: tuple[str, ...], tmp_path: Path
) -> _Open:
    """Return a function that starts two workers, and creates an application with a guarantee."""

    @contextmanager
    def open_(guarantee: str) -> Iterator[tuple[SparkHosts, ProcessApplication]]:
        with spark_hosts(kafka_distribution, tmp_path, spark_jars) as cluster:
            yield cluster, new_application(cluster, guarantee)

    return open_


def test_tasks_stay_while_nothing_fails_and_move_when_an_executor_is_lost(open_application: _Open) -> None:
    """At least once, the default. Only the batches of the lost executor are processed again."""
    with open_application("at_least_once") as (cluster, application):
        driver_host = cluster.network.add("driver")
        application.feed(_RECORDS)
        with cluster.driver(application, driver_host, max_records=_BATCH) as driver:
            _await_processed(cluster, application, driver)
            opened = driver.counter("tasksOpened")
            assert _TASKS <= opened <= 2 * _TASKS, cluster.log(driver_host)
            application.feed(_RECORDS)
            _await_processed(cluster, application, driver)
            assert driver.counter("tasksOpened") == opened
            application.check_results()  # nothing has failed: at least once is exactly once
            cluster.workers[0].kill()
            application.feed(_RECORDS)
            _await_processed(cluster, application, driver)
        assert "tasks moved to other executors" in cluster.log(driver_host)
        (application.folder / "run.log").write_text(cluster.log(driver_host))
        application.check_at_least_once(1, _BATCH)


def _await_processed(
    cluster: SparkHosts, application: ProcessApplication, driver: Driver, seconds: float = START_SECONDS
) -> None:
    """Wait until all records are forwarded and counted, and their offsets are committed."""
    partitions = [(topic, each) for topic in _INPUTS for each in range(application.partitions)]
    # The last offset of a partition may be the offset of a transaction marker.
    most = len(partitions) if application.guarantee == "exactly_once_v2" else 0
    connection = Connection(bootstrap_servers=(cluster.servers,))

    def is_done() -> bool:
        if driver.process.poll() is not None:
            return True
        # A client that was created before the repartition topic keeps not finding it.
        with closing(GroupOffsets(connection, "counted")) as offsets, suppress(KafkaException):
            lag = offsets.backlogs({"all": partitions}, {})["all"].lag
            topics = application.topics
            written = min(topics.written("passed"), topics.written("counted"))
            return lag is not None and lag <= most and written >= application.fed
        return False

    assert until(is_done, seconds), cluster.log(driver.host)[-4000:]
    assert driver.process.poll() is None, cluster.log(driver.host)[-4000:]


_SERIES = [
    pytest.param("exactly_once_v2", 20, 25_000, id="exactly once"),
    pytest.param("at_least_once", 20, 25_000, id="at least once"),
]


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize(("guarantee", "number", "records"), _SERIES)
def test_every_record_is_processed_as_guaranteed_in_a_series_of_faults(
    open_application: _Open, guarantee: str, number: int, records: int
) -> None:
    """With `HEADWATER_HOSTS_FAULTS` faults, `HEADWATER_HOSTS_RECORDS` records for each of them."""
    number = int(os.environ.get("HEADWATER_HOSTS_FAULTS", number))
    records = int(os.environ.get("HEADWATER_HOSTS_RECORDS", records))
    draw = random.Random(number)  # noqa: S311 - a series that is repeated
    max_records = max(_BATCH, records // 50)
    with open_application(guarantee) as (cluster, application):
        driver_host = cluster.network.add("driver")
        application.feed(records)
        with cluster.driver(application, driver_host, max_records=max_records) as driver:
            for fault in series(number, number):
                before = application.counted()
                application.feed(records)
                application.await_counted(before + draw.randrange(1, records // 2), driver.process)
                assert driver.process.poll() is None, cluster.log(driver_host)[-4000:]
                cause(fault, cluster, draw.choice(cluster.workers))
            _await_processed(cluster, application, driver, seconds=1_800.0)
        (application.folder / "run.log").write_text(cluster.log(driver_host))
        if guarantee == "exactly_once_v2":
            application.check_results()
        else:
            application.check_at_least_once(number, max_records)
