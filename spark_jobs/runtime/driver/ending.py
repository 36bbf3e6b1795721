"""PURE. What a person is told of a failure: what happened, without the tracebacks that led there."""

import re
from itertools import dropwhile, takewhile

from infra.model.problems import Problem, ProblemCode, ProblemsError
from spark_jobs.runtime.engine.task import PoisonRecordError

_TRACEBACK = "Traceback (most recent call last):\n"
_JAVA = ("\tat ", "Driver stacktrace:", "JVM stacktrace:", "SQLSTATE:", "This stopped SparkContext")
_GATEWAY = re.compile(r"An error occurred while calling \S+\s*:?\s*")
_LONGEST = 600


def reason(failure: BaseException) -> str:
    """Return what stands behind the last Python traceback of its text, else what precedes Java's."""
    if isinstance(failure, ProblemsError):
        return "; ".join(problem.summary for problem in failure.problems)
    text = _GATEWAY.sub("", str(failure).strip(), count=1)
    _, traceback, last = text.rpartition(_TRACEBACK)
    lines = (last if traceback else text).splitlines()
    told = dropwhile(lambda line: traceback and line.startswith(" "), lines)
    kept = "\n".join(takewhile(lambda line: not line.lstrip(" ").startswith(_JAVA), told)).strip()
    return (kept or type(failure).__name__)[:_LONGEST]


def not_started(application: str, failure: BaseException) -> Problem:
    """Return the problem that Spark itself did not start."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="Spark does not start.",
        expected="Java 17 or newer, Spark's Kafka connector, a master that answers",
        found=reason(failure),
        why="Nothing has been processed.",
        fix="Look above for what Spark and Java said. Without a connection to Maven Central name the "
        "connector's jars by --jars; `make toolchain` of a clone fetches them.",
    )


def no_connector(application: str, failure: BaseException) -> Problem:
    """Return the problem that Spark cannot read Kafka."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="Spark cannot read Kafka.",
        expected="Spark's Kafka connector of the version of Spark, with the jars that it needs",
        found=reason(failure),
        why="Records are read by Spark.",
        fix="Name the jars by --jars (docs/runtime.md lists them), or leave it away: Spark fetches them.",
    )


def ended_by(application: str, query: str, failure: BaseException | None) -> Problem:
    """Return the problem that a sub-topology stopped for good with."""
    is_poison = isinstance(failure, PoisonRecordError)
    return Problem(
        code=ProblemCode.QUERY_FAILED,
        application=application,
        summary=f"Sub-topology {query} cannot go on.",
        found=reason(failure) if failure is not None else "a query that Spark ended without a reason",
        why=_WHY_POISON if is_poison else _WHY_REPEATED,
        fix=_FIX_POISON if is_poison else _FIX_REPEATED,
    )


_WHY_POISON = "The exception handlers say to fail, as by default: nothing is passed over in silence."
_FIX_POISON = (
    "Correct the serdes or the expression and start again: it goes on with this record. To pass over what "
    "cannot be handled set deserialization.exception.handler and processing.exception.handler to continue "
    "(LogAndContinueExceptionHandler, LogAndContinueProcessingExceptionHandler); "
    "errors.dead.letter.queue.topic.name keeps it."
)
_WHY_REPEATED = "It was started again as often as --restarts allows, and failed each time."
_FIX_REPEATED = (
    "Remove the cause and start again: it goes on where it stopped. --log-level debug shows tracebacks."
)
