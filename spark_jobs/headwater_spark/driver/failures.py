"""What a failure means: the text for the operator, the problem, and whether the query is restarted."""

import re
from collections.abc import Sequence
from itertools import dropwhile, takewhile

import attrs

from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater_spark.driver.states import THREAD_NOTE
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.program.settings import CONTINUE_HANDLERS
from headwater_spark.engine.task import PoisonRecordError

_TRACEBACK = "Traceback (most recent call last):\n"
_JAVA = (
    "\tat ",
    "Driver stacktrace:",
    "JVM stacktrace:",
    "SQLSTATE:",
    "This stopped SparkContext",
    "=== Streaming Query ===",
)
_GATEWAY = re.compile(r"An error occurred while calling \S+\s*:?\s*")
_NOTE = re.compile(rf"^{THREAD_NOTE}(.+)$", re.MULTILINE)
_FAILED_TASK = re.compile(r"\bTask (\d+) in stage ")
_MAX_LENGTH = 600
_WORKER_DIED = "Python worker exited unexpectedly"
_WORKER_DIED_TEXT = (
    "A Python worker process ended without a Python error. It was killed, often by the operating system for "
    "lack of memory, or native code failed. `headwater run` needs less memory with a smaller --max-records "
    "or --max-bytes."
)
_NO_HEAP = (
    "Spark's JVM has too little heap. Raise spark.driver.memory (on a cluster spark.executor.memory, too). "
    "`headwater run` needs less with a smaller --max-records or --max-bytes."
)
_NO_SPACE = (
    "A disk is full. Free space in the folder of Spark's temporary files (spark.local.dir, by default /tmp), "
    "and in the folders of --checkpoint and --state-dir of `headwater run`."
)
_NO_MEMORY = (
    "A Python worker has too little memory. Raise its limit. `headwater run` needs less with a smaller "
    "--max-records or --max-bytes."
)
_SHORTAGES = (
    (re.compile("OutOfMemoryError: (?:Java heap space|GC overhead limit)"), _NO_HEAP),
    (re.compile("No space left on device|Disk quota exceeded"), _NO_SPACE),
    (
        re.compile(r"^(?:[\w.]+\.)?_?(?:Array|Arrow)?MemoryError\b|Cannot allocate memory", re.MULTILINE),
        _NO_MEMORY,
    ),
)
"""The text of a failure for lack of a resource, and what to do."""
_DISK_FULL = "the disk is full"
"""Our own text, which says what to do."""


@attrs.frozen
class RestartPolicy:
    """How often a query is restarted after failures, with exponential backoff.

    `max_failures` counts failures in a row; a batch, or a step of one, that commits records resets the count.
    With 0 the first failure is final. Backoffs are milliseconds.
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
        return self.pause_ms(failures_in_a_row)

    def pause_ms(self, failures_in_a_row: int) -> int:
        """Return the pause before the next restart, whatever the number of failures."""
        return int(min(self.first_backoff_ms * 2 ** min(failures_in_a_row - 1, 16), self.max_backoff_ms))


@attrs.frozen(kw_only=True)
class Failure:
    """A failure, with its whole message from when it happened (`captured_failures`)."""

    exception: BaseException
    text: str

    @property
    def reason(self) -> str:
        """The message without tracebacks: the text after the last Python one, or before a Java one."""
        return _extract_reason(self.exception, self.text)


def failed_thread(failure: Failure | None, threads: Sequence[str]) -> str:
    """Return the stream thread of the Spark task that failed its job; empty if no task did.

    A task notes it on its exception. If its process was killed, only its number is known: Spark's task i ran
    on thread i of `threads`, modulo their number.
    """
    text = failure.text if failure is not None else ""
    if noted := _NOTE.search(text):
        return noted[1]
    found = _FAILED_TASK.search(text)
    return threads[int(found[1]) % len(threads)] if found and threads else ""


def _extract_reason(failure: BaseException, text: str) -> str:
    if isinstance(failure, ProblemsError):
        return "; ".join(map(_summarize_problem, failure.problems))
    text = _GATEWAY.sub("", text.strip(), count=1)
    if _WORKER_DIED in text:
        return _WORKER_DIED_TEXT
    _, traceback, last = text.rpartition(_TRACEBACK)
    lines = _NOTE.sub("", last if traceback else text).splitlines()
    message = dropwhile(lambda line: traceback and line.startswith(" "), lines)
    kept = "\n".join(takewhile(lambda line: not line.lstrip(" ").startswith(_JAVA), message)).strip()
    return (kept or type(failure).__name__)[:_MAX_LENGTH] + _shortage_remedy(text)


def _shortage_remedy(text: str) -> str:
    """Return what to do about a failure for lack of memory or space, after a line break; or nothing."""
    found = next((remedy for pattern, remedy in _SHORTAGES if pattern.search(text)), None)
    return "" if found is None or _DISK_FULL in text else f"\n{found}"


_WITHOUT_ANSWER = (
    ProblemCode.CLUSTER_UNREACHABLE,
    ProblemCode.REQUEST_NOT_ANSWERED,
    ProblemCode.AUTHENTICATION_REFUSED,
)


def _summarize_problem(problem: Problem) -> str:
    """Return the summary; if brokers did not answer or refused the login, with what was found."""
    if problem.code in _WITHOUT_ANSWER and problem.found:
        return f"{problem.summary.removesuffix('.')}: {problem.found}"
    return problem.summary


_TOO_LITTLE_MEMORY = re.compile(r"must be at least \d+.*(spark\.(?:driver|executor)\.memory)", re.DOTALL)
_START_FIX = (
    "Read the output of Spark and Java above. Without a connection to Maven Central, pass the connector's "
    "jars by --jars; `headwater toolchain spark` downloads them where there is a connection."
)


def spark_not_started(application: str, failure: Failure) -> Problem:
    """Return the problem that Spark did not start."""
    small = _TOO_LITTLE_MEMORY.search(failure.reason)
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="Spark did not start.",
        expected="Java 17 or newer, Spark's Kafka connector, a reachable master",
        found=failure.reason,
        why="Records that were not committed are processed at the next start.",
        fix=f"Raise {small[1]}: `--conf {small[1]}=1g`." if small else _START_FIX,
    )


def spark_unsupported(
    application: str, version: str, supported: tuple[str, str], failures: Sequence[str]
) -> Problem:
    """Return the problem that the installed PySpark differs from the supported ones, the oldest and newest.

    `failures` are the private parts of Spark that are missing, each with its failure.
    """
    oldest, newest = supported
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary=f"PySpark {version} is not supported.",
        expected=f"PySpark {oldest} to {newest}",
        found="; ".join(failures),
        why="Headwater uses these private parts of Spark in each batch. No record has been processed.",
        fix=f"Install pyspark=={newest} where the driver and the executors run.",
    )


def connector_missing(application: str, failure: Failure) -> Problem:
    """Return the problem that Spark cannot read Kafka."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="Spark cannot read Kafka.",
        expected="Spark's Kafka connector for the installed version of Spark, with its dependencies",
        found=failure.reason,
        why="Spark reads the records.",
        fix="Pass the connector's four jars by --jars, as docs/runtime.md shows for spark-submit. "
        "`headwater run` without --jars downloads them.",
    )


def not_started(application: str, failure: Failure) -> Problem:
    """Return the problem that the first start of a query failed."""
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application,
        summary="The application did not start.",
        expected="answers of Spark and Kafka, and a checkpoint that can be written",
        found=failure.reason,
        why="No record has been processed.",
        fix="Remove the cause and start again. --log-level debug shows the traceback.",
    )


def query_failed(application: str, query: str, failure: Failure | None, response: str = "") -> Problem:
    """Return the problem of a sub-topology whose query is not restarted.

    `response` is the answer of `uncaught.exception.handler`; empty: none is configured.
    """
    why, fix = _WHY_REPEATED, _FIX_REPEATED
    if response:
        why, fix = _WHY_HANDLER.format(response=response), _FIX_REPEATED
    elif failure is not None and isinstance(failure.exception, PoisonRecordError):
        why, fix = _poison_texts(failure.exception.handler)
    return Problem(
        code=ProblemCode.QUERY_FAILED,
        application=application,
        summary=f"Sub-topology {query} failed.",
        found=failure.reason if failure is not None else "Spark ended the query without a reason",
        why=why,
        fix=fix,
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


def _poison_texts(handler: str | None) -> tuple[str, str]:
    """Return why a record stops the application, and what to do; `handler` is None if none applies."""
    if handler is None:
        return _WHY_NO_HANDLER, f"{_CORRECT}."
    why = f"{handler} is set to fail, which is the default: no record is skipped silently."
    skip = f"To skip such records, set {handler} to {CONTINUE_HANDLERS[handler]}"
    return why, f"{_CORRECT}. {skip}; errors.dead.letter.queue.topic.name keeps them."


_CORRECT = (
    "Correct the serdes, the expression, the class or the settings of the topic, and start again: processing "
    "resumes with this record"
)
_WHY_NO_HANDLER = "No exception handler applies to this failure, as in Kafka Streams."
_WHY_REPEATED = "It was restarted as often as --restarts allows, and failed each time."
_WHY_HANDLER = "The failure of its stream thread was answered with {response} (uncaught.exception.handler)."
_FIX_REPEATED = (
    "Remove the cause and start again: processing resumes where it stopped. --log-level debug shows "
    "tracebacks."
)
