"""A running application as the handler of its failures sees it (KIP-671): stream threads, processors.

    from headwater_spark.stream_threads import UncaughtExceptionHandler, UncaughtExceptionResponse

    class ReplaceAfterTimeouts(UncaughtExceptionHandler):
        def init(self, application):
            self.application = application

        def handle(self, failure):
            if "timed out" in failure.reason:
                self.application.add_stream_thread()
                return UncaughtExceptionResponse.SHUTDOWN_THREAD
            return UncaughtExceptionResponse.SHUTDOWN_CLIENT

A document names the class in its config: `uncaught.exception.handler: "module:ReplaceAfterTimeouts"`. The
driver creates one instance before it starts the application.
"""

from enum import Enum, StrEnum
from typing import Protocol

import attrs

from headwater.model.problems import Problem

__all__ = [
    "ExpansionPhase",
    "ProcessorsStatus",
    "RemovalTimeoutError",
    "RunningApplication",
    "ThreadFailure",
    "ThreadMetadata",
    "UncaughtExceptionHandler",
    "UncaughtExceptionResponse",
]


class ExpansionPhase(Enum):
    """What an expansion does.

    CHECK: nothing has changed. CATCH_UP: entries are copied while the application runs. CUT: the
    sub-topologies with state process no batch.
    """

    IDLE = "idle"
    CHECK = "check"
    CATCH_UP = "catch-up"
    CUT = "cut"


@attrs.frozen
class ProcessorsStatus:
    """The number of processors, and how far an expansion is.

    `processors` is the present number; None = the document declares none. `target` belongs to the running
    expansion. `copied` and `remaining` are records of changelog topics that it has read and not yet read;
    while the input is checked, records of the input. `problems` say why the last expansion was refused, or is
    delayed.
    """

    processors: int | None
    target: int | None = None
    phase: ExpansionPhase = ExpansionPhase.IDLE
    copied: int = 0
    remaining: int = 0
    problems: tuple[Problem, ...] = ()

    @property
    def is_advancing(self) -> bool:
        """Whether an expansion runs and is not delayed."""
        return self.target is not None and not self.problems


class UncaughtExceptionResponse(StrEnum):
    """What happens after the failure of a stream thread (`StreamThreadExceptionResponse`)."""

    REPLACE_THREAD = "replace-thread"
    SHUTDOWN_THREAD = "shutdown-thread"
    SHUTDOWN_CLIENT = "shutdown-client"
    SHUTDOWN_APPLICATION = "shutdown-application"


@attrs.frozen(kw_only=True)
class ThreadMetadata:
    """One stream thread. `state` is CREATED, RUNNING or PENDING_SHUTDOWN; dead threads are not listed.

    `runs` are the sub-topologies whose batches run on the thread.
    """

    name: str
    state: str
    runs: tuple[str, ...] = ()


@attrs.frozen(kw_only=True)
class ThreadFailure:
    """A failure of a stream thread.

    `thread` is the name of the thread, `subtopology` the id of the sub-topology whose batch failed. `reason`
    is the message of `exception` without tracebacks. `failures_in_a_row` counts the failures of the
    sub-topology since it last committed records, this one included.
    """

    thread: str
    subtopology: str
    exception: BaseException | None
    reason: str
    failures_in_a_row: int


class RemovalTimeoutError(TimeoutError):
    """A stream thread was not gone within the timeout; its removal continues. `thread` is its name."""

    def __init__(self, thread: str, seconds: float) -> None:
        super().__init__(
            f"{thread} still runs a batch after {seconds:g} s. It takes no new batch: the removal continues."
        )
        self.thread = thread


class RunningApplication(Protocol):
    """What a handler uses of the running application."""

    def add_stream_thread(self) -> str | None:
        """Return the name of the added thread, None if the application is not RUNNING or REBALANCING."""
        ...

    def remove_stream_thread(self, timeout_seconds: float | None = None) -> str | None:
        """Return the name of the removed thread, None if there is none, or the state does not allow it.

        Raises:
            RemovalTimeoutError: The thread still runs a batch; the removal continues.
        """
        ...

    def threads(self) -> tuple[ThreadMetadata, ...]:
        """Return the threads that are not dead, the oldest first."""
        ...

    def processors(self) -> ProcessorsStatus:
        """Return the number of processors, and what an expansion does (KIP-287)."""
        ...

    def expand_processors(self, processors: int) -> None:
        """Add processors while the application runs; return when this has begun in the background.

        Nothing happens if the application has this number, or is being expanded to it.

        Raises:
            ProblemsError: The application does not run, has no number of processors, cannot have this one, or
                is being expanded to another one.
        """
        ...


class UncaughtExceptionHandler:
    """The base of users' handlers. An exception in `handle` shuts the client down."""

    def init(self, application: RunningApplication) -> None:
        """Called once, before the application starts."""

    def handle(self, failure: ThreadFailure) -> UncaughtExceptionResponse:
        """Return what happens; must return within 30 seconds."""
        raise NotImplementedError
