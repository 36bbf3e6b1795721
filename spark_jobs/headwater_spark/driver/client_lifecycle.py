"""The state of a client, why it stops, and the threads that run until it does (`KafkaStreams.State`)."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence

import structlog
from py4j.protocol import Py4JNetworkError  # type: ignore[import-untyped]

from headwater.command_line import spark_ended
from headwater.model.problems import Problem
from headwater_spark.driver.captured_failures import failure_reason
from headwater_spark.driver.failures import client_failed
from headwater_spark.driver.states import ClientState

_log = structlog.get_logger(__name__)
_Run = Callable[[threading.Event], None]


class ClientLifecycle:
    """The state of one client; any thread may call any method.

    `stopping` is set as soon as a stop is requested. `problems` are why it stops because of an error.
    """

    def __init__(self, application: str) -> None:
        self.problems: tuple[Problem, ...] = ()
        self.stopping = threading.Event()
        self._application = application
        self._state = ClientState.CREATED
        self._state_changed = threading.Condition()

    @property
    def state(self) -> ClientState:
        return self._state

    def change_state(self, state: ClientState) -> None:
        """Change the state, if it can follow the present one."""
        with self._state_changed:
            if self._state.may_become(state):
                _log.info(
                    "state changed", application=self._application, old=self._state.value, new=state.value
                )
                self._state = state
                self._state_changed.notify_all()

    def stop_with(self, problems: Sequence[Problem]) -> None:
        """Request the stop because of `problems`, and return."""
        self.problems = tuple(problems)
        for problem in problems:
            _log.error(
                "application stops", problem=problem.code, topic=problem.topic, summary=problem.summary
            )
        self.fail()

    def stop_because_of(self, error: Exception) -> None:
        """Request the stop because a thread of the client failed, unless it is requested already."""
        _log.debug("client failed", application=self._application, exc_info=error)
        if not self.stopping.is_set():
            is_end_of_spark = isinstance(error, Py4JNetworkError | ConnectionError)
            problem = spark_ended if is_end_of_spark else client_failed
            self.stop_with([problem(self._application, failure_reason(error))])

    def fail(self) -> None:
        """Request the stop because of an error that others describe."""
        self.change_state(ClientState.PENDING_ERROR)
        self.stopping.set()

    def wait_until_final(self, seconds: float | None = None) -> bool:
        """Return whether the client has reached a final state within `seconds`; None = no limit."""
        with self._state_changed:
            return self._state_changed.wait_for(lambda: self._state.is_final, seconds)


class WatchThreads:
    """Threads that request answers from Kafka and Spark until the client stops; `start` and `join` them.

    What a thread raises stops the client.

    Args:
        runs: name of a thread → what it runs until the event that it gets is set.
    """

    def __init__(self, runs: Mapping[str, _Run], lifecycle: ClientLifecycle) -> None:
        self._lifecycle = lifecycle
        self._threads = [
            threading.Thread(target=self._execute, args=(run,), name=name, daemon=True)
            for name, run in runs.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> list[str]:
        """Wait until the threads have ended; return the names of threads that have not in `seconds`.

        Such a thread waits for an answer, and ends after it. Threads that were not started have ended.
        """
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]

    def _execute(self, run: _Run) -> None:
        try:
            run(self._lifecycle.stopping)
        except Exception as error:  # noqa: BLE001 - of Kafka, Spark or its JVM
            self._lifecycle.stop_because_of(error)
