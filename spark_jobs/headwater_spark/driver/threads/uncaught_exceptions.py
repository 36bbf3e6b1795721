"""What happens after the failure of a stream thread: `uncaught.exception.handler` (KIP-671)."""

import threading
from collections.abc import Callable

import attrs
import structlog

from headwater.model.problems import ProblemsError
from headwater.model.topology import Application
from headwater_spark.driver.failures import Failure, RestartPolicy
from headwater_spark.driver.threads.settings import fixed_response, handler_name, handler_not_loaded
from headwater_spark.driver.threads.stream_threads import StreamThreads
from headwater_spark.engine.partitioners.static import TaskMigrated
from headwater_spark.engine.program.user_code import load_class
from headwater_spark.stream_threads import (
    RunningApplication,
    ThreadFailure,
    UncaughtExceptionHandler,
    UncaughtExceptionResponse,
)

HANDLER_SECONDS = 30.0
_log = structlog.get_logger(__name__)


def load_handler(application: Application) -> UncaughtExceptionHandler | None:
    """Return an instance of the handler's class; None if a response is configured, or nothing.

    Raises:
        ProblemsError: The class cannot be loaded, or is no handler.
    """
    name = handler_name(application)
    if name is None or fixed_response(name) is not None:
        return None
    try:
        handler = load_class(name)()
    except Exception as error:  # noqa: BLE001 - importing a user's module may raise anything
        found = f"{type(error).__name__}: {error}"
        raise ProblemsError([handler_not_loaded(application, name, found)]) from None
    if not isinstance(handler, UncaughtExceptionHandler):
        found = f"{type(handler).__name__}, which is no subclass of UncaughtExceptionHandler"
        raise ProblemsError([handler_not_loaded(application, name, found)])
    return handler


@attrs.define(kw_only=True, eq=False)
class UncaughtExceptions:
    """Handles failures of an application's queries; the client's thread calls `backoff_ms`.

    `handler` is an instance of the configured class. `on_shutdown_application` is called when all clients of
    the application have to stop.
    """

    _application: Application
    _threads: StreamThreads
    _restarts: RestartPolicy
    _on_shutdown_application: Callable[[], object]
    _handler: UncaughtExceptionHandler | None = None
    _handler_seconds: float = HANDLER_SECONDS
    last_response: str = attrs.field(default="", init=False)
    """The latest response; empty: none, or no handler is configured."""

    def init(self, application: RunningApplication) -> None:
        """Give the running application to the handler."""
        if self._handler is not None:
            self._handler.init(application)

    def backoff_ms(
        self,
        subtopology: str,
        failure: Failure | None,
        thread: str,
        failures_in_a_row: int,
        outage_ms: int | None = None,
    ) -> int | None:
        """Return how long to wait before the query is restarted; None: the client ends with an error.

        `thread` is the stream thread of the failed task; empty: the failure is outside of tasks. `outage_ms`
        is how long to wait for brokers if only they are the reason, and no handler decides (`OutageWait`).
        """
        exception, reason = (None, "") if failure is None else (failure.exception, failure.reason)
        pause = outage_ms
        if pause is None:
            pause = self._restarts.backoff_ms(exception, failures_in_a_row)
        if isinstance(exception, TaskMigrated):
            return pause
        name = self._threads.failed_thread(thread)
        configured = handler_name(self._application)
        if configured is None:
            self._fail_thread(name, subtopology, reason, replace=pause is not None)
            return pause
        response = fixed_response(configured) or self._ask_handler(
            ThreadFailure(
                thread=name,
                subtopology=subtopology,
                exception=exception,
                reason=reason,
                failures_in_a_row=failures_in_a_row,
            )
        )
        self.last_response = response.value
        _log.warning("failure of a stream thread handled", thread=name, response=response.value)
        pause = self._restarts.pause_ms(failures_in_a_row)
        match response:
            case UncaughtExceptionResponse.REPLACE_THREAD:
                self._fail_thread(name, subtopology, reason, replace=True)
                return pause
            case UncaughtExceptionResponse.SHUTDOWN_THREAD:
                is_last = self._fail_thread(name, subtopology, reason, replace=False)
                return None if is_last else pause
            case UncaughtExceptionResponse.SHUTDOWN_CLIENT:
                self._fail_thread(name, subtopology, reason, replace=False)
                return None
            case UncaughtExceptionResponse.SHUTDOWN_APPLICATION:
                self._fail_thread(name, subtopology, reason, replace=False)
                self._on_shutdown_application()
                return None

    def _fail_thread(self, thread: str, subtopology: str, reason: str, *, replace: bool) -> bool:
        """Record the failure of a thread; return whether it was the last one, and is not replaced."""
        if not thread:
            return False  # the last thread was removed: the failure is not one of a thread
        replacement, is_last = self._threads.fail(thread, replace=replace)
        _log.warning(
            "stream thread failed",
            thread=thread,
            query=subtopology,
            replaced_by=replacement,
            threads=self._threads.alive,
            reason=reason,
        )
        return is_last

    def _ask_handler(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
        """Return the handler's response; SHUTDOWN_CLIENT if it raises, hangs, or returns something else."""
        handler = self._handler
        responses: list[UncaughtExceptionResponse] = []

        def ask() -> None:
            try:
                with self._threads.mark_handler(failure.thread):
                    if handler is not None:
                        responses.append(UncaughtExceptionResponse(handler.handle(failure)))
            except Exception as error:  # noqa: BLE001 - of a user's class
                _log.error("uncaught.exception.handler failed", failure=f"{type(error).__name__}: {error}")

        # The client waits for the response, but not longer for a handler that hangs.
        thread = threading.Thread(target=ask, name="uncaught-exception-handler", daemon=True)
        thread.start()
        thread.join(self._handler_seconds)
        if thread.is_alive():
            _log.error("uncaught.exception.handler did not return", seconds=self._handler_seconds)
        return responses[0] if responses else UncaughtExceptionResponse.SHUTDOWN_CLIENT
