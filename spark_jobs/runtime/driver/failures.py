"""What a failure means: the text for the operator, the problem, and whether the query is restarted."""

import re
from itertools import dropwhile, takewhile

import attrs

from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.runtime.engine.partitioners.static import TaskMigrated
from spark_jobs.runtime.engine.task import PoisonRecordError

_TRACEBACK = "Traceback (most recent call last):\n"
_JAVA = ("\tat ", "Driver stacktrace:", "JVM stacktrace:", "SQLSTATE:", "This stopped SparkContext")
_GATEWAY = re.compile(r"An error occurred while calling \S+\s*:?\s*")
_MAX_LENGTH = 600


@attrs.frozen
class RestartPolicy:
    """How often a query is restarted after failures, with exponential backoff.

    `max_failures` counts failures in a row; a batch that succeeds resets the count. With 0 the first failure
    is final. Backoffs are milliseconds.
    """

    max_failures: int = 10
    first_backoff_ms: int = 200
    max_backoff_ms: int = 30_000

    def backoff_ms(self, failure: BaseException | None, failures_in_a_row: int) -> int | None:
        """Return how long to wait before the restart; None = give up. `failures_in_a_row` includes this one.

        A record that cannot be processed will fail again, so the query is not restarted. A record that waits
        for a new partition has no limit.
        """
        if isinstance(failure, PoisonRecordError):
            return None
        if failures_in_a_row > self.max_failures and not isinstance(failure, TaskMigrated):
            return None
        return int(min(self.first_backoff_ms * 2 ** min(failures_in_a_row - 1, 16), self.max_backoff_ms))


def failure_reason(failure: BaseException) -> str:
    """Return the message without tracebacks: the text after the last Python one, or before a Java one."""
    if isinstance(failure, ProblemsError):
        return "; ".join(problem.summary for problem in failure.problems)
    text = _GATEWAY.sub("", str(failure).strip(), count=1)
    _, traceback, last = text.rpartition(_TRACEBACK)
    lines = (last if traceback else text).splitlines()
    message = dropwhile(lambda line: traceback and line.startswith(" "), lines)
    kept = "\n".join(takewhile(lambda line: not line.lstrip(" ").startswith(_JAVA), message)).strip()
    return (kept or type(failure).__name__)[:_MAX_LENGTH]


def spark_not_started(application: str, failure: BaseException) -> Problem:
    """Return the problem that Spark did not start."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="Spark did not start.",
        expected="Java 17 or newer, Spark's Kafka connector, a reachable master",
        found=failure_reason(failure),
        why="No record has been processed.",
        fix="Read the output of Spark and Java above. Without a connection to Maven Central, pass the "
        "connector's jars by --jars; `make toolchain` of a clone downloads them.",
    )


def connector_missing(application: str, failure: BaseException) -> Problem:
    """Return the problem that Spark cannot read Kafka."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="Spark cannot read Kafka.",
        expected="Spark's Kafka connector for the installed version of Spark, with its dependencies",
        found=failure_reason(failure),
        why="Spark reads the records.",
        fix="Pass the jars by --jars (docs/runtime.md lists them), or omit it: Spark downloads them.",
    )


def query_failed(application: str, query: str, failure: BaseException | None) -> Problem:
    """Return the problem of a sub-topology whose query is not restarted."""
    is_poison = isinstance(failure, PoisonRecordError)
    return Problem(
        code=ProblemCode.QUERY_FAILED,
        application=application,
        summary=f"Sub-topology {query} failed.",
        found=failure_reason(failure) if failure is not None else "Spark ended the query without a reason",
        why=_WHY_POISON if is_poison else _WHY_REPEATED,
        fix=_FIX_POISON if is_poison else _FIX_REPEATED,
    )


def client_failed(application: str, found: str) -> Problem:
    """Return the problem that the client can no longer poll its queries or watch its topics."""
    return Problem(
        code=ProblemCode.QUERY_FAILED,
        application=application,
        summary="The client failed.",
        expected="answers of Spark and Kafka, or failures that the client can handle",
        found=found,
        why="Failed queries would not be restarted, and changes of topics would not be noticed.",
        fix="Start again: processing resumes where it stopped. --log-level debug shows tracebacks.",
    )


_WHY_POISON = "The exception handlers are set to fail, which is the default: no record is skipped silently."
_FIX_POISON = (
    "Correct the serdes or the expression and start again: processing resumes with this record. To skip "
    "records that cannot be processed, set deserialization.exception.handler and "
    "processing.exception.handler to continue (LogAndContinueExceptionHandler, "
    "LogAndContinueProcessingExceptionHandler); errors.dead.letter.queue.topic.name keeps them."
)
_WHY_REPEATED = "It was restarted as often as --restarts allows, and failed each time."
_FIX_REPEATED = (
    "Remove the cause and start again: processing resumes where it stopped. --log-level debug shows "
    "tracebacks."
)
