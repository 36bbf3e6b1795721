"""Applications on a standalone cluster: a driver that is lost, and executors that come and go.

The lost driver is stopped, not killed: no connection is closed, as when its host has lost its power.
"""

import logging
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from headwater.toolchain.broker import Broker
from headwater.toolchain.broker.readiness import until
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication
from tests.runtime.spark.processes import continue_all, stop_all
from tests.runtime.spark.standalone_cluster import StandaloneCluster, standalone_cluster

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(900),
]
_log = logging.getLogger(__name__)
_BATCH = 100
_MEMORY = ("--conf", "spark.executor.memory=600m")
_DYNAMIC = {
    "spark.dynamicAllocation.enabled": "true",
    "spark.dynamicAllocation.initialExecutors": "1",
    "spark.dynamicAllocation.executorIdleTimeout": "2s",
    # By default, an executor with shuffled rows stays until the driver's JVM has collected its garbage.
    "spark.dynamicAllocation.shuffleTracking.timeout": "2s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.decommission.enabled": "true",
    "spark.executor.cores": "1",
}


@attrs.frozen
class _Programs:
    """An application whose drivers have separate checkpoints. Workers share a state folder: one host."""

    broker: Broker
    cluster: StandaloneCluster
    folder: Path
    jars: tuple[str, ...]

    def driver(self, name: str, guarantee: str) -> ProcessApplication:
        folder = self.folder / name
        folder.mkdir()
        topics = Topics(self.broker.bootstrap_servers)
        created = ProcessApplication(self.broker, topics, folder, self.jars, guarantee)
        created.state_folder = self.folder / "state"
        return created


@pytest.fixture
def programs(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[_Programs]:
    with own_broker() as broker, standalone_cluster(tmp_path / "spark") as cluster:
        yield _Programs(broker, cluster, tmp_path, spark_jars)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_the_next_driver_gets_the_executors_of_a_lost_one(programs: _Programs, guarantee: str) -> None:
    """The lost driver has all cores of the cluster. When it continues, it ends."""
    lost, following = (programs.driver(name, guarantee) for name in ("lost", "following"))
    lost.set_up()
    (following.folder / "document.yaml").write_bytes((lost.folder / "document.yaml").read_bytes())
    lost.feed(500)
    url = programs.cluster.url
    with lost.run(url, until_idle=False, options=_MEMORY, max_records=_BATCH) as first:
        lost.await_counted(100, first)
        lost.feed(1_500)
        stop_all(first.pid)
        began = time.monotonic()
        with following.run(url, until_idle=False, options=_MEMORY, max_records=_BATCH) as second:
            seconds = {}
            for text in ("starting Spark", "checking classes", "takes over", "new=RUNNING"):
                assert until(lambda text=text: following.has_logged(text), TIMEOUT_SECONDS), following.log()  # type: ignore[misc]
                seconds[text] = time.monotonic() - began
            before = lost.counted()
            assert until(lambda: following.counted() > before, TIMEOUT_SECONDS), following.log()
            seconds["results"] = time.monotonic() - began
            _log.info("%s, seconds after the loss of the driver: %s", guarantee, seconds)
            assert following.has_logged("executors of the replaced client released")
            continue_all(first.pid)
            assert first.wait(TIMEOUT_SECONDS) == 1, lost.log()
            assert lost.has_logged("Another client of counted is active.")
            following.fed = lost.fed
            second.send_signal(signal.SIGTERM)
            assert second.wait(TIMEOUT_SECONDS) == os.EX_OK, following.log()
    following.finish(url)
    if guarantee == "exactly_once_v2":
        following.check_results()
    else:
        following.check_at_least_once(2, _BATCH)


@pytest.mark.parametrize("guarantee", ["exactly_once_v2", "at_least_once"])
def test_results_are_exact_while_executors_come_and_go(programs: _Programs, guarantee: str) -> None:
    """Dynamic allocation, more executors than tasks, and a worker that is decommissioned."""
    application = programs.driver("driver", guarantee)
    application.set_up()
    leaving = programs.cluster.add_worker()
    options = [*_MEMORY]
    for name, value in _DYNAMIC.items():
        options += ["--conf", f"{name}={value}"]
    application.feed(500)
    url = programs.cluster.url
    with application.run(url, until_idle=False, options=options, max_records=_BATCH) as process:
        application.await_counted(500, process)
        assert until(lambda: _executors(programs.cluster) == 0, TIMEOUT_SECONDS), "none is idle for 2 s"
        application.feed(1_500)
        assert until(lambda: _executors(programs.cluster) > 0, TIMEOUT_SECONDS)
        leaving.send_signal(signal.SIGPWR)
        assert until(lambda: "Decommission worker" in programs.cluster.log(leaving), TIMEOUT_SECONDS)
        assert until(lambda: len(programs.cluster.alive_workers()) == 2, TIMEOUT_SECONDS)
        application.feed(500)
        application.await_counted(application.fed, process)
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT_SECONDS) == os.EX_OK, application.log()
    application.finish(url)
    if guarantee == "exactly_once_v2":
        application.check_results()
    else:
        application.check_at_least_once(1, _BATCH)


def _executors(cluster: StandaloneCluster) -> int:
    """Return the number of cores that executors have: one each."""
    return sum(int(each["coresused"]) for each in cluster.alive_workers())
