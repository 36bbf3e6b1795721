"""Jobs of a reshard on a Spark session of their own, in which a Python worker is killed once, then the JVM.

`python -m tests.runtime.reshard.killed_task FOLDER` prints which shares were executed again, and the results;
then the problem of a session whose JVM ends before its first job.
"""

import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs

from headwater.kafka import Connection
from headwater.model.problems import ProblemsError
from headwater_spark.driver.processor_move.entry_copy import report_no_progress
from headwater_spark.driver.reshard import spark_job
from headwater_spark.driver.reshard.entry_move import Share
from headwater_spark.driver.reshard.plan import Reshard
from headwater_spark.driver.reshard.spark_job import SparkSettings, open_spark
from headwater_spark.driver.reshard.spark_passes import SparkPasses
from headwater_spark.engine.scaling.transfers import Transfer
from headwater_spark.spark_internals.jvm import jvm_process

_RESHARD = Reshard("app", (Transfer("t", "t", 2, 2),), (), {})


@attrs.frozen
class KilledPass:
    """A pass that kills the Python worker of the first share, the first time."""

    mark: Path
    writes: bool
    shares: int = 2

    def execute(self, share: Share) -> int:
        if share.number == 0 and not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return share.number


def main(folder: Path) -> None:
    settings = SparkSettings(master="local[2,4]", conf={"spark.driver.memory": "512m"})
    connection = Connection(bootstrap_servers=("localhost:1",))
    with open_spark(settings, _RESHARD, connection, report_no_progress) as passes:
        for writes in (True, False):
            found = _execute(passes, KilledPass(folder / f"killed-{writes}", writes))
            sys.stdout.write(json.dumps(found) + "\n")
    setattr(spark_job, "ship_packages", _kill_jvm)  # noqa: B010 - in this process only
    try:
        with open_spark(settings, _RESHARD, connection, report_no_progress):
            pass
    except ProblemsError as error:
        sys.stdout.write(json.dumps([each.summary for each in error.problems]) + "\n")


def _kill_jvm(_: object) -> None:
    """Kill the JVM, as the system does for lack of memory, and continue with the session."""
    if (jvm := jvm_process()) is not None:
        jvm.kill()
        jvm.wait()


def _execute(passes: SparkPasses, request: Any) -> object:  # noqa: ANN401 - no `Pass`, but has its methods
    repeated: list[Sequence[int]] = []

    def again(missing: Sequence[int]) -> Any:  # noqa: ANN401 - same
        repeated.append(missing)
        return request

    results = passes.results("copying", request, range(2), again)
    return {"repeated": repeated, "results": results}


if __name__ == "__main__":
    from tests.runtime.reshard import killed_task  # executors import the pass by this name

    killed_task.main(Path(sys.argv[1]))
