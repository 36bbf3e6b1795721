"""Texts of failures, and restarts after them."""

from threading import Event
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from pyspark.errors import PySparkException

from headwater.model.problems import Location, Problem, ProblemCode, ProblemsError
from headwater.model.topology import Application
from headwater_spark.driver.captured_failures import capture_failure, failure_reason
from headwater_spark.driver.failures import (
    RestartPolicy,
    connector_missing,
    failed_thread,
    query_failed,
    spark_not_started,
    spark_unsupported,
)
from headwater_spark.driver.run.application_run import start_application
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.program.settings import CONTINUE_HANDLERS, setting_problems
from headwater_spark.engine.task import PoisonRecordError

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
_AT = Location("shop.yaml", 1, 1, "/application")
_JAVA = """An error occurred while calling o12.collect.
: org.apache.spark.SparkException: Job aborted
\tat org.apache.spark.scheduler.DAGScheduler.abort(DAGScheduler.scala:1)
"""

_QUERY = """java.io.IOException: Input/output error
=== Streaming Query ===
Identifier: shop sub-topology 0 [id = 499741b3, runId = 10c2df90]
Current Committed Offsets: {}
"""


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (_WORKER, "ImportError: shop has no Enrich\nand a second line of it"),
        (
            _JAVA,
            "org.apache.spark.SparkException: Job aborted",
        ),
        (_QUERY, "java.io.IOException: Input/output error"),
        ("the broker is down", "the broker is down"),
        ("", "RuntimeError"),
        ("Traceback (most recent call last):\n  cut off", "RuntimeError"),
    ],
)
def test_reason_has_no_tracebacks(text: str, reason: str) -> None:
    assert failure_reason(RuntimeError(text)) == reason


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("org.apache.spark.SparkException: Job aborted: java.lang.OutOfMemoryError: Java heap space", "heap"),
        ("java.lang.OutOfMemoryError: GC overhead limit exceeded", "spark.driver.memory"),
        (f"{_JAVA}Caused by: java.io.IOException: No space left on device\n", "--checkpoint"),
        ("OSError: [Errno 122] Disk quota exceeded: '/tmp/x'", "spark.local.dir"),
        (f"{_WORKER}Traceback (most recent call last):\nMemoryError\nrecord of orders", "--max-records"),
        ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 8 GiB", "Raise its limit"),
        ("lmdb.MemoryError: /state/0_0: Cannot allocate memory", "Raise its limit"),
    ],
)
def test_the_reason_says_what_to_do_for_lack_of_memory_or_space(text: str, remedy: str) -> None:
    first, *_, last = failure_reason(RuntimeError(text)).splitlines()
    assert first != last
    assert remedy in last
    assert "--" not in last or "`headwater run`" in last, "`headwater reshard` reports it, too"


@pytest.mark.parametrize(
    "text",
    [
        "OutOfMemoryError: unable to create native thread",
        "headwater_spark.engine.PoisonRecordError: record of orders: cannot be processed: MemoryError",
        "OSError: No space left on device\nStateNotWrittenError: the disk is full. Free space there",
    ],
)
def test_no_remedy_is_added_to_other_failures(text: str) -> None:
    assert failure_reason(RuntimeError(text)) == text


def test_a_python_worker_that_was_killed_is_explained_without_settings_of_spark() -> None:
    reason = failure_reason(
        RuntimeError(
            "org.apache.spark.SparkException: Python worker exited unexpectedly (crashed). Consider setting "
            "'spark.python.worker.faulthandler.enabled' configuration to 'true' for the better traceback."
        )
    )
    assert "It was killed, often by the operating system for lack of memory" in reason
    assert "--max-records" in reason
    assert "faulthandler" not in reason


def test_reason_of_problems_is_their_summaries() -> None:
    problems = [
        Problem(code=ProblemCode.TIMEOUT, summary=text)
        for text in ("No broker answered.", "Another one timed out.")
    ]
    assert failure_reason(ProblemsError(problems)) == "No broker answered.; Another one timed out."


@pytest.mark.parametrize(
    ("code", "summary", "found"),
    [
        (
            ProblemCode.REQUEST_NOT_ANSWERED,
            "The Kafka brokers did not answer the request to describe topics.",
            "kafka-1:9092 answers, and names kafka-1:9092, kafka-2:9092; no connection to kafka-2:9092",
        ),
        (ProblemCode.CLUSTER_UNREACHABLE, "No Kafka broker can be reached.", "Connection refused"),
        (
            ProblemCode.AUTHENTICATION_REFUSED,
            "The Kafka brokers refuse the credentials.",
            "Invalid username or password",
        ),
    ],
)
def test_reason_of_a_request_without_an_answer_says_what_was_found(
    code: ProblemCode, summary: str, found: str
) -> None:
    problem = Problem(code=code, summary=summary, found=found)
    assert failure_reason(ProblemsError([problem])) == f"{summary[:-1]}: {found}"


@pytest.mark.parametrize(
    ("handler", "continues"),
    [
        ("deserialization.exception.handler", "LogAndContinueExceptionHandler"),
        ("processing.exception.handler", "LogAndContinueProcessingExceptionHandler"),
        ("production.exception.handler", "AlwaysContinueProductionExceptionHandler"),
    ],
)
def test_the_fix_for_a_record_names_the_handler_that_applies(handler: str, continues: str) -> None:
    failure = PoisonRecordError("record of orders, partition 0, offset 7: cannot be read", handler)
    poison = query_failed("shop", "0", capture_failure(failure))
    assert poison.code is ProblemCode.QUERY_FAILED
    assert "offset 7" in (poison.found or "")
    assert f"{handler} is set to fail" in poison.why
    assert f"set {handler} to {continues};" in poison.fix
    assert "errors.dead.letter.queue.topic.name" in poison.fix


def test_the_fix_for_a_record_can_be_followed() -> None:
    """The word `continue` is refused: the handlers are classes."""
    for handler, class_name in CONTINUE_HANDLERS.items():
        assert not list(setting_problems(Application("shop", _AT, config={handler: class_name})))
        assert list(setting_problems(Application("shop", _AT, config={handler: "continue"})))


def test_no_handler_is_named_where_none_applies() -> None:
    failure = PoisonRecordError("record of orders: its timestamp cannot be extracted")
    problem = query_failed("shop", "0", capture_failure(failure))
    assert "handler" not in problem.fix
    assert "No exception handler applies" in problem.why


def test_repeated_failure_names_the_limit_and_the_cause() -> None:
    repeated = query_failed("shop", "0", capture_failure(RuntimeError(_WORKER)))
    assert "--restarts" in repeated.why
    assert repeated.found == "ImportError: shop has no Enrich\nand a second line of it"


def test_failed_start_of_spark_is_a_problem_with_its_reason() -> None:
    problem = spark_not_started(
        "shop", capture_failure(RuntimeError("[JAVA_GATEWAY_EXITED] Java gateway process exited"))
    )
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert "JAVA_GATEWAY_EXITED" in (problem.found or "")
    assert "--jars" in problem.fix


@pytest.mark.parametrize("key", ["spark.driver.memory", "spark.executor.memory"])
def test_memory_below_the_minimum_of_spark_is_to_be_raised(key: str) -> None:
    reason = f'[INVALID] Memory 67108864 must be at least 471859200. Please increase it by "{key}" in Spark.'
    assert f"`--conf {key}=1g`" in spark_not_started("shop", capture_failure(RuntimeError(reason))).fix


def test_unsupported_spark_is_a_problem_that_names_each_missing_part() -> None:
    failures = ["the clock: no method", "the input: gone"]
    problem = spark_unsupported("shop", "5.0.0", ("4.2.0", "4.2.1"), failures)
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert problem.found == "the clock: no method; the input: gone"
    assert (problem.expected, "4.2.1" in problem.fix) == ("PySpark 4.2.0 to 4.2.1", True)


def test_missing_connector_is_a_problem_that_names_the_option() -> None:
    problem = connector_missing("shop", capture_failure(RuntimeError("Failed to find data source: kafka.")))
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert "--jars" in problem.fix


class _Unstarted:
    """An application whose first query does not start."""

    id = "shop"

    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def start(self) -> None:
        raise self._failure


@pytest.mark.parametrize(
    ("failure", "found"),
    [
        (PySparkException("java.io.IOException: No space left on device"), "A disk is full. Free space"),
        (KafkaException(KafkaError(KafkaError._TIMED_OUT)), "Timed out"),
    ],
)
def test_a_query_that_does_not_start_is_a_problem(failure: Exception, found: str) -> None:
    """Without it, the process would end with an internal error."""
    unstarted: Any = _Unstarted(failure)
    with pytest.raises(ProblemsError) as raised:
        start_application(unstarted)
    (problem,) = raised.value.problems
    assert problem.code is ProblemCode.NOT_RUNNABLE
    assert found in str(problem.found)


def test_backoff_grows_to_its_maximum_until_the_policy_gives_up() -> None:
    policy = RestartPolicy(max_failures=10, first_backoff_ms=100, max_backoff_ms=1_000)
    assert [policy.backoff_ms(OSError(), number) for number in (1, 2, 3, 4, 5, 10, 11)] == [
        100, 200, 400, 800, 1_000, 1_000, None,
    ]  # fmt: skip


def test_poison_record_is_final_and_missing_partition_never_is() -> None:
    assert RestartPolicy().backoff_ms(PoisonRecordError("bad"), 1) is None
    assert RestartPolicy(max_failures=2).backoff_ms(TaskMigrated("out", 5, 4), 1_000) == 30_000


class _JavaError(Exception):
    """As Py4J's: its text comes from the JVM."""

    def __str__(self) -> str:
        raise ConnectionRefusedError


def test_a_failure_whose_text_is_lost_with_the_jvm_has_a_reason() -> None:
    assert failure_reason(_JavaError()) == "_JavaError"
    assert failed_thread(capture_failure(_JavaError()), ["shop-StreamThread-1"]) == ""


class _SilentError(Exception):
    """As Py4J's, of a JVM that hangs until the test has ended."""

    answers = Event()

    def __str__(self) -> str:
        self.answers.wait()
        return "late"


def test_a_failure_whose_text_the_jvm_does_not_return_has_a_reason_in_time() -> None:
    try:
        failure = capture_failure(_SilentError(), seconds=0.05)
        assert failure.reason == "_SilentError: no text, because Spark's JVM did not answer"
        assert query_failed("shop", "0", failure).found == failure.reason
    finally:
        _SilentError.answers.set()
