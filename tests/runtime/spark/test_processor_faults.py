"""KIP-287: partitions are added while an application with processors is killed again and again.

Each record of (topic, partition, offset) is processed once, in the order of its key, and counted once. In
`make test`, `test_expansion_kills` kills a worker when partitions were added, `test_processors` adds
partitions, and `test_lost_files` deletes checkpoint and state of an application without processors.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from headwater.toolchain.broker import Broker
from tests.runtime.spark.growing_processes import GrowingApplication
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import kill, kill_all, kill_worker
from tests.runtime.spark.processes import python_workers

if TYPE_CHECKING:
    import subprocess

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(1800)]


@pytest.fixture
def application(
    own_broker: Callable[[], Broker], spark_jars: tuple[str, ...], tmp_path: Path
) -> Iterator[GrowingApplication]:
    with own_broker() as broker:
        application = GrowingApplication(broker, Topics(broker.bootstrap_servers), tmp_path, spark_jars)
        application.set_up()
        yield application


@pytest.mark.soak
@pytest.mark.parametrize("kills", [1, 3])
def test_nothing_is_lost_or_repeated_by_kills_while_partitions_are_added(
    application: GrowingApplication, kills: int
) -> None:
    application.feed(800)
    with application.run(until_idle=False) as process:
        application.await_progress(400, process)
        application.expand(4)
        application.feed(800)
        application.await_progress(500, process)
        if kills == 1:
            _kill_workers_and_expand(application, process)
        kill_all(process)
    if kills > 1:
        application.feed(400)
        with application.run(until_idle=False) as process:
            application.await_progress(100, process)
            _kill_workers_and_expand(application, process)
            kill_all(process)
    for folder in ("checkpoint", "state"):
        shutil.rmtree(application.folder / folder)
    application.expand(8)
    application.feed(800)
    if kills > 1:
        with application.run(until_idle=False) as process:
            application.await_progress(500, process)
            kill_all(process)
    application.finish(submitted=True)
    application.check_results()
    assert application.topics.partitions("counted-counts-changelog") == 2
    assert application.topics.partitions("counted-regions-changelog") == 2


def _kill_workers_and_expand(application: GrowingApplication, process: "subprocess.Popen[bytes]") -> None:
    """Kill all Python workers, and add partitions to the repartition topic."""
    kill_worker(process)
    for worker in python_workers(process.pid):
        kill(worker)
    application.topics.expand("counted-regions-repartition", 4)
    application.feed(400)
    application.await_progress(300, process)
