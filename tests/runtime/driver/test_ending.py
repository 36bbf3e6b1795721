"""What a person is told of a failure."""

import pytest

from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.runtime.driver.ending import ended_by, no_connector, not_started, reason
from spark_jobs.runtime.engine.task import PoisonRecordError

_WORKER = """An exception was thrown from the Python worker:
Traceback (most recent call last):
  File "task.py", line 1, in first
    first()
ValueError: the cause

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "task.py", line 2, in second
    second()
    ^^^^^^^^
ImportError: shop has no Enrich
and a second line of it
 SQLSTATE: 38000
\tat org.apache.spark.api.python.BasePythonRunner.read(PythonRunner.scala:665)
"""
_JAVA = """An error occurred while calling o12.collect.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
"""


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_WORKER, "ImportError: shop has no Enrich\nand a second line of it"),
        (
            _JAVA,
            "org.apache.spark.SparkException: Job aborted",
        ),
        ("the broker is away", "the broker is away"),
        ("", "RuntimeError"),
        ("Traceback (most recent call last):\n  cut off", "RuntimeError"),
    ],
)
def test_a_reason_has_no_tracebacks(text: str, told: str) -> None:
    assert reason(RuntimeError(text)) == told


def test_problems_are_told_by_their_summaries() -> None:
    problems = [
        Problem(code=ProblemCode.TIMEOUT, summary=text)
        for text in ("No broker answers.", "Nor does another.")
    ]
    assert reason(ProblemsError(problems)) == "No broker answers.; Nor does another."


def test_a_record_and_a_failure_that_repeats_are_mended_differently() -> None:
    poison = ended_by(
        "shop", "0", PoisonRecordError("record of orders, partition 0, offset 7: cannot be read")
    )
    assert poison.code is ProblemCode.QUERY_FAILED
    assert "offset 7" in (poison.found or "")
    assert "errors.dead.letter.queue.topic.name" in poison.fix
    repeated = ended_by("shop", "0", RuntimeError(_WORKER))
    assert "--restarts" in repeated.why
    assert repeated.found == "ImportError: shop has no Enrich\nand a second line of it"


def test_spark_that_does_not_start_is_no_error_of_ours() -> None:
    problem = not_started("shop", RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"))
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert "JAVA_GATEWAY_EXITED" in (problem.found or "")


def test_a_connector_that_is_not_there_is_no_error_of_ours() -> None:
    problem = no_connector("shop", RuntimeError("Failed to find data source: kafka."))
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert "--jars" in problem.fix
