"""A Python worker of a local Spark session is killed: its share is executed again. Then its JVM is killed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[3]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.soak  # without Spark: `test_spark_passes`
@pytest.mark.timeout(600)
def test_the_share_of_a_killed_python_worker_is_executed_again_and_the_end_of_the_jvm_is_a_problem(
    tmp_path: Path,
) -> None:
    """The repeated task of a pass that writes does nothing, so its share is executed in another round."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.runtime.reshard.killed_task", str(tmp_path)],
        cwd=_ROOT,
        env={**os.environ, "PYTHONPATH": str(_ROOT)},
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    writing, reading, ended = map(json.loads, done.stdout.splitlines())
    assert writing == {"repeated": [[0]], "results": [0, 1]}
    assert reading == {"repeated": [], "results": [0, 1]}
    assert {each.name for each in tmp_path.iterdir()} >= {"killed-True", "killed-False"}
    assert ended == ["Spark has ended before it moved the state of app."]
    assert "Traceback" not in done.stderr
