"""Executors that share no state folder, as on several hosts: the results are those of one host."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication
from toolchain.broker import Broker

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

_RECORDS = 1_500
_BATCHES = 5
_WORK = Path(pyspark.__file__).parent / "work"
"""Where a local cluster runs its executors, each in a folder of its own."""


@pytest.fixture
def application(
    own_broker: Callable[[], Broker],
    spark_jars: tuple[str, ...],
    tmp_path: Path,
    request: pytest.FixtureRequest,
) -> Iterator[ProcessApplication]:
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        created = ProcessApplication(broker, topics, tmp_path, spark_jars, request.param)
        # A link that each process resolves: the working directory of an executor.
        created.state_folder = Path("/proc/self/cwd", f"state-{tmp_path.name}")
        created.set_up()
        yield created


@pytest.mark.parametrize("application", ["at_least_once", "exactly_once_v2"], indirect=True)
def test_results_are_exact_on_executors_with_separate_state(application: ProcessApplication) -> None:
    application.feed(_RECORDS // _BATCHES)
    with application.run("local-cluster[2,1,1024]", until_idle=False, max_records=50) as process:
        for _ in range(1, _BATCHES):
            application.await_counted(application.fed, process)
            application.feed(_RECORDS // _BATCHES)
        application.await_counted(application.fed, process)
        assert process.poll() is None, application.log()
    assert application.state_folder is not None
    tasks = [
        {path.name for path in (folder / "counted").glob("?_?")}
        for folder in _WORK.glob(f"*/*/{application.state_folder.name}")
    ]
    assert len(tasks) == 2
    assert set.intersection(*tasks), "no task ran on both executors"
    application.check_results()
    application.check_counts("counted-counts-changelog")
    application.check_log()
    assert "query failed" not in application.log()
