"""Answers to failures of stream threads, on real threads and without Spark."""

import threading

import attrs
import pytest

from headwater.model.topology import Application
from headwater.spec import load_text
from headwater_spark.driver.captured_failures import capture_failure, failure_reason
from headwater_spark.driver.failures import RestartPolicy, failed_thread
from headwater_spark.driver.states import ClientState
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.driver.threads.uncaught_exceptions import UncaughtExceptions
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.task import PoisonRecordError
from headwater_spark.stream_threads import ThreadFailure, UncaughtExceptionHandler, UncaughtExceptionResponse

_FAILURE = RuntimeError("brokers do not answer")
_CLASS = "some:Handler"
_FIRST = "shop-StreamThread-1"


def _application(handler: str | None) -> Application:
    config = {"uncaught.exception.handler": handler} if handler else {}
    text = f"application: {{id: shop, config: {config}}}\ntopology: [{{stream: in}}]\n"
    return load_text(text, "shop.yaml").documents[0].application


@attrs.define
class _Case:
    handler: str | None = None
    instance: UncaughtExceptionHandler | None = None
    handler_seconds: float = 30.0
    shutdowns: list[str] = attrs.field(factory=list)
    threads: StreamThreads = attrs.field(factory=lambda: StreamThreads("shop", 2, lambda: 4))
    exceptions: UncaughtExceptions = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.exceptions = UncaughtExceptions(
            application=_application(self.handler),
            threads=self.threads,
            restarts=RestartPolicy(max_failures=3, first_backoff_ms=100, max_backoff_ms=1_000),
            on_shutdown_application=lambda: self.shutdowns.append("all"),
            handler=self.instance,
            handler_seconds=self.handler_seconds,
        )

    def pause(
        self, thread: str = _FIRST, failures_in_a_row: int = 1, failure: BaseException = _FAILURE
    ) -> int | None:
        return self.exceptions.backoff_ms("0", capture_failure(failure), thread, failures_in_a_row)

    def names(self) -> list[str]:
        return [thread.name for thread in self.threads.metadata()]


class _Handler(UncaughtExceptionHandler):
    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.failures: list[ThreadFailure] = []

    def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
        self.failures.append(failure)
        return self._answer  # type: ignore[return-value]  # also wrong answers


def test_without_a_handler_threads_are_replaced_as_often_as_restarts_allow() -> None:
    case = _Case()
    assert [case.pause(failures_in_a_row=1), case.names()] == [
        100,
        ["shop-StreamThread-2", "shop-StreamThread-3"],
    ]
    assert case.pause("shop-StreamThread-2", 3) == 400
    assert case.pause("shop-StreamThread-3", 4) is None
    assert case.threads.pool.failed == 3
    assert case.threads.alive == 1
    assert _Case().pause(failure=PoisonRecordError("bad")) is None


def test_in_an_outage_a_thread_is_replaced_as_often_as_it_fails() -> None:
    case = _Case()
    failure = capture_failure(_FAILURE)
    assert case.exceptions.backoff_ms("0", failure, _FIRST, 100, outage_ms=400) == 400
    assert (case.threads.alive, case.threads.pool.failed) == (2, 1)


def test_record_that_waits_for_a_partition_is_no_failure() -> None:
    case = _Case("shutdown-client")
    assert case.pause(failure=TaskMigrated("out", 5, 4)) == 100
    assert case.threads.pool.failed == 0


def test_replaced_thread_has_no_limit_and_growing_pauses() -> None:
    case = _Case("replace-thread")
    assert [case.pause(case.names()[0], number) for number in (1, 2, 3, 4, 100)] == [
        100,
        200,
        400,
        800,
        1_000,
    ]
    assert case.pause(case.names()[0], 1, PoisonRecordError("bad")) == 100
    assert (case.threads.alive, case.threads.pool.failed) == (2, 6)


def test_client_ends_when_the_last_thread_is_shut_down() -> None:
    case = _Case("shutdown-thread")
    assert case.pause() == 100
    assert case.pause("shop-StreamThread-2", 2) is None
    assert case.threads.alive == 0


def test_shutdown_of_the_client_or_of_all_clients_is_final() -> None:
    client, application = _Case("shutdown-client"), _Case("shutdown-application")
    assert client.pause() is None
    assert client.shutdowns == []
    assert application.pause() is None
    assert application.shutdowns == ["all"]


def test_failure_outside_of_tasks_counts_for_the_oldest_thread() -> None:
    case = _Case("shutdown-thread")
    assert case.pause("") == 100
    assert case.names() == ["shop-StreamThread-2"]


def test_failure_after_the_removal_of_the_last_thread_is_not_one_of_a_thread() -> None:
    case = _Case("shutdown-thread")
    for _ in range(2):
        case.threads.remove(lambda: ClientState.RUNNING)
    assert case.pause("") == 100
    assert case.threads.pool.failed == 0


def test_handler_gets_the_failure() -> None:
    handler = _Handler(UncaughtExceptionResponse.REPLACE_THREAD)
    case = _Case(_CLASS, handler)
    assert case.pause(failures_in_a_row=2) == 200
    (failure,) = handler.failures
    assert (failure.thread, failure.subtopology, failure.failures_in_a_row) == (_FIRST, "0", 2)
    assert (failure.exception, failure.reason) == (_FAILURE, "brokers do not answer")


@pytest.mark.parametrize("answer", [None, "restart", 3])
def test_wrong_answer_shuts_the_client_down(answer: object) -> None:
    assert _Case(_CLASS, _Handler(answer)).pause() is None


def test_handler_that_raises_shuts_the_client_down() -> None:
    class Raising(UncaughtExceptionHandler):
        def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
            raise RuntimeError(f"no answer to the failure of {failure.thread}")

    assert _Case(_CLASS, Raising()).pause() is None


def test_handler_that_hangs_shuts_the_client_down() -> None:
    released = threading.Event()

    class Hanging(UncaughtExceptionHandler):
        def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
            released.wait(60)
            del failure
            return UncaughtExceptionResponse.REPLACE_THREAD

    case = _Case(_CLASS, Hanging(), handler_seconds=0.1)
    try:
        assert case.pause() is None
    finally:
        released.set()


def test_removal_of_a_thread_that_fails_meanwhile_ends_without_a_replacement() -> None:
    """KAFKA-20873: removal waits for the thread, whose failure is handled at the same time."""
    case = _Case("replace-thread")
    removed: list[str | None] = []
    with case.threads.take_threads("0", 2, threading.Event()):
        remover = threading.Thread(
            target=lambda: removed.append(case.threads.remove(lambda: ClientState.RUNNING))
        )
        remover.start()
        while case.threads.alive == 2:
            remover.join(0.01)
        assert case.pause(_FIRST) == 100
        assert removed == []
    remover.join(60)
    assert removed == [_FIRST]
    assert case.names() == ["shop-StreamThread-2"]


def test_reason_of_a_failure_is_without_its_thread() -> None:
    text = "Traceback (most recent call last):\n  File\nOSError: full\non stream thread b\n"
    assert failure_reason(RuntimeError(text)) == "OSError: full"


@pytest.mark.parametrize(
    ("text", "thread"),
    [
        ("Job aborted due to stage failure: Task 0 in stage 5.0 failed 2 times, most recent", "a"),
        ("Job aborted due to stage failure: Task 5 in stage 51.0 failed 1 times", "b"),
        ("Kafka does not answer", ""),
        ("Traceback (most recent call last):\n  File\nOSError: full\non stream thread b\n", "b"),
    ],
)
def test_thread_of_a_failure_is_that_of_the_failed_task(text: str, thread: str) -> None:
    assert failed_thread(capture_failure(RuntimeError(text)), ("a", "b")) == thread
    assert failed_thread(None, ("a", "b")) == ""
