"""Executors that share no state folder, as on several hosts, have the same results as one host.

In `make test`, `runtime/hosts/test_hosts` has such executors, and `runtime/worker/test_several_hosts` has
such workers.
"""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pyspark
import pytest

from headwater.toolchain.broker import Broker
from tests.runtime.spark.kafka_topics import Topics
from tests.runtime.spark.process_application import TIMEOUT_SECONDS, ProcessApplication

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.slow,
    pytest.mark.soak,
    pytest.mark.timeout(900),
]

_RECORDS, _BATCH = 84_000, 12_000
"""Records of such batches are packed."""
_PARTITIONS = 3
"""An executor with one core has two tasks of a sub-topology: the other one may execute the second."""
_WORK = Path(pyspark.__file__).parent / "work"
"""Where a local cluster runs its executors, each in a folder of its own."""


@pytest.fixture
def application(
    own_broker: Callable[[], Broker],
    spark_jars: tuple[str, ...],
    tmp_path: Path,
    unique: Callable[[str], str],
    request: pytest.FixtureRequest,
) -> Iterator[ProcessApplication]:
    with own_broker() as broker:
        topics = Topics(broker.bootstrap_servers)
        created = ProcessApplication(
            broker, topics, tmp_path, spark_jars, request.param, partitions=_PARTITIONS
        )
        # A link that each process resolves: the working directory of an executor.
        created.state_folder = Path("/proc/self/cwd", unique("state"))
        created.set_up()
        yield created
        for folder in _state_folders(created):
            shutil.rmtree(folder)  # two applications of the same second share the executors' folders


def _state_folders(application: ProcessApplication) -> list[Path]:
    assert application.state_folder is not None
    return list(_WORK.glob(f"*/*/{application.state_folder.name}"))


@pytest.mark.parametrize("application", ["at_least_once", "exactly_once_v2"], indirect=True)
def test_results_are_exact_on_executors_with_separate_state(application: ProcessApplication) -> None:
    application.feed(_RECORDS)
    # A task whose executor is busy does not wait for it: it runs on the other one.
    options = ("--conf", "spark.locality.wait=0s", "--log-level", "debug")
    with application.run("local-cluster[2,1,1024]", max_records=_BATCH, options=options) as process:
        assert process.wait(TIMEOUT_SECONDS) == 0, application.log()
    tasks = [{path.name for path in (each / "counted").glob("?_?")} for each in _state_folders(application)]
    assert len(tasks) == 2
    assert set.intersection(*tasks), "no task ran on both executors"
    application.check_results()
    application.check_counts("counted-counts-changelog")
    application.check_log()
    log = "\n".join(application.log_lines())
    assert "records packed" in log
    for refused in ("query failed", "not placed", "not grouped", "not packed"):
        assert refused not in log
