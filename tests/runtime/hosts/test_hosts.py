"""An application on several hosts: its tasks stay where they are, and its results are as guaranteed."""

import logging
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from headwater.toolchain import KafkaDistribution
from headwater.toolchain.broker.readiness import until
from headwater_spark.driver.queries.row_distribution import FEWEST_PACKED
from tests.runtime.hosts.cluster import START_SECONDS, Driver, SparkHosts, new_application, spark_hosts
from tests.runtime.hosts.fault_series import FaultSeries
from tests.runtime.hosts.network import reason_to_skip
from tests.runtime.hosts.reconcile import Reconciliation
from tests.runtime.spark.process_application import ProcessApplication

_log = logging.getLogger(__name__)
_REASON = reason_to_skip()
pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(_REASON), reason=_REASON),
]

_RECORDS, _BATCH = 300, 100
_TASKS = 4
"""Two sub-topologies with two tasks each."""
_STOP_MS = "120000"
"""An orderly stop takes some seconds, and longer on a busy machine."""
_LONG_WAITS = {
    # On a busy machine, no task waits long enough to run elsewhere, and no executor that lives is lost.
    "spark.locality.wait": "1h",
    "spark.storage.blockManagerHeartbeatTimeoutMs": "600s",
    "spark.executor.heartbeat.maxFailures": "200",
}
_Open = Callable[..., AbstractContextManager[tuple[SparkHosts, ProcessApplication]]]


@pytest.fixture
def open_application(
    kafka_distribution: KafkaDistribution, spark_jars: tuple[str, ...], tmp_path: Path
) -> _Open:
    """Return a function that starts two workers, and creates an application with a guarantee."""

    @contextmanager
    def open_(
        guarantee: str, *, with_clocks: bool = False
    ) -> Iterator[tuple[SparkHosts, ProcessApplication]]:
        with spark_hosts(kafka_distribution, tmp_path, spark_jars, with_clocks=with_clocks) as cluster:
            yield cluster, new_application(cluster, guarantee)

    return open_


def test_tasks_stay_while_nothing_fails_and_move_when_an_executor_is_lost(open_application: _Open) -> None:
    """At least once, the default. Only the batches of the lost executor are processed again.

    A task that is opened again on its host, as after a slow answer of the broker, restores nothing. SIGTERM
    ends the driver in order. Without Spark: `control/test_termination`.
    """
    options = [each for name, value in _LONG_WAITS.items() for each in ("--conf", f"{name}={value}")]
    options += ["--stop-timeout-ms", _STOP_MS]
    with open_application("at_least_once") as (cluster, application):
        driver_host = cluster.network.add("driver")
        application.feed(_RECORDS)
        with cluster.driver(application, driver_host, max_records=_BATCH, options=options) as driver:
            _await_processed(cluster, application, driver)
            _await_tasks_on_all_hosts(cluster, application, driver)
            restored = driver.counter("recordsRestored")
            application.feed(_RECORDS)
            _await_processed(cluster, application, driver)
            assert driver.counter("tasksOpened") >= _TASKS
            assert driver.counter("recordsRestored") == restored, cluster.log(driver_host)
            assert "tasks not placed" not in cluster.log(driver_host)
            if "query failed" not in cluster.log(driver_host):
                application.check_results()  # nothing has failed: at least once is exactly once
            cluster.workers[0].kill()
            application.feed(_RECORDS)
            _await_processed(cluster, application, driver)
            assert driver.stop() == os.EX_OK, cluster.log(driver_host)[-4000:]
        assert "tasks moved to other executors" in cluster.log(driver_host)
        (application.folder / "run.log").write_text(cluster.log(driver_host))
        application.check_at_least_once(1, _BATCH)


def _await_tasks_on_all_hosts(cluster: SparkHosts, application: ProcessApplication, driver: Driver) -> None:
    """Process records until each worker has tasks and none moves: executors may start at different times."""

    def stay() -> bool:
        before = (driver.counter("tasksOpened"), driver.counter("recordsRestored"))
        application.feed(_BATCH)
        _await_processed(cluster, application, driver)
        after = (driver.counter("tasksOpened"), driver.counter("recordsRestored"))
        leases = [any((host.files / "state").rglob("*.lease")) for host in cluster.workers]
        return before == after and all(leases)

    assert until(stay, START_SECONDS), cluster.log(driver.host)[-4000:]


def _await_processed(
    cluster: SparkHosts, application: ProcessApplication, driver: Driver, seconds: float = START_SECONDS
) -> None:
    """Wait until all records are forwarded and counted, and their offsets are committed."""

    def is_done() -> bool:
        return driver.process.poll() is not None or application.is_processed()

    assert until(is_done, seconds), cluster.log(driver.host)[-4000:]
    assert driver.process.poll() is None, cluster.log(driver.host)[-4000:]


_SEEDS = range(int(os.environ.get("HEADWATER_HOSTS_SEEDS", "2")))
_FAULTS, _RECORDS_BEFORE_FAULT = 20, 25_000
"""With two seeds, 40 faults and 1,000,000 records for each guarantee."""
_BATCHES_BEFORE_FAULT = 2
"""Large batches: a larger part of the time is spent on records, so more faults happen meanwhile."""
_FAULTS_PER_REPEATED_BATCH = 10
"""At least once, a batch is processed again if a fault happens between its output and its commit, which is a
small part of the time: in two measured series of 20 faults, no record was forwarded twice. A batch for each
fault would be half of all records."""


@pytest.mark.soak
@pytest.mark.timeout(14_400)
@pytest.mark.parametrize("seed", _SEEDS)
@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_every_record_is_processed_as_guaranteed_in_a_series_of_faults(
    open_application: _Open, guarantee: str, seed: int
) -> None:
    """With `HEADWATER_HOSTS_FAULTS` faults, and `HEADWATER_HOSTS_RECORDS` records before each of them."""
    number = int(os.environ.get("HEADWATER_HOSTS_FAULTS", _FAULTS))
    records = int(os.environ.get("HEADWATER_HOSTS_RECORDS", _RECORDS_BEFORE_FAULT))
    max_records = max(_BATCH, records // _BATCHES_BEFORE_FAULT)
    with open_application(guarantee, with_clocks=True) as (cluster, application):
        with FaultSeries(cluster, application, seed, records, max_records) as faults:
            faults.run(number)
            _await_processed(cluster, application, faults.driver, seconds=1_800.0)
        (application.folder / "run.log").write_text(faults.logs())
        if max_records >= FEWEST_PACKED:
            assert "records packed" in faults.logs()
        _log.info("%s, seed %d, %d faults: %s", guarantee, seed, number, Reconciliation.of(application))
        if guarantee == "exactly_once_v2":
            application.check_results()
            application.check_changelog()
        else:
            repeated = max(1, number // _FAULTS_PER_REPEATED_BATCH) * max_records
            application.check_at_least_once(number, max_records, most=repeated)
