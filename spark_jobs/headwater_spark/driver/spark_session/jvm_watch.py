"""Watch whether Spark's JVM answers: a query that waits for its restart is observed by nothing else.

The thread that restarts queries calls the JVM. If that does not answer, the thread waits without end, and the
query stays in its state.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Thread

import attrs
import structlog

_log = structlog.get_logger(__name__)
_INTERVAL_SECONDS = 1.0
_ASK_SECONDS = 0.5
"""Less than the interval: an answer arrives between two observations."""
_LONGEST_STEP_SECONDS = 2.0
"""More time between two observations is not counted: the process itself was paused."""
_LOGGED_SECONDS = 5.0


@attrs.define(kw_only=True, eq=False)
class JvmWatch:
    """One thread calls `run`, any thread reads `silent_seconds`. `ask` returns an answer of the JVM."""

    _ask: Callable[[], object]
    _clock: Callable[[], float] = time.monotonic
    silent_seconds: float = attrs.field(default=0.0, init=False)
    """How long the JVM has not answered; 0 = it answers."""
    _answers: int = attrs.field(default=0, init=False)
    _observed: int = attrs.field(default=0, init=False)
    _at: float = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._at = self._clock()

    def run(self, stopping: Event) -> None:
        """Observe the JVM until `stopping` is set; never waits for an answer."""
        # One thread: each thread has a connection of its own. One without an answer ends with the process.
        Thread(target=self._ask_repeatedly, args=(stopping,), name="jvm-answers", daemon=True).start()
        while not stopping.wait(_INTERVAL_SECONDS):
            self.observe()

    def observe(self) -> None:
        """Count the time since the last answer."""
        now = self._clock()
        step, self._at = min(now - self._at, _LONGEST_STEP_SECONDS), now
        has_answered, self._observed = self._observed != self._answers, self._answers
        before = self.silent_seconds
        self.silent_seconds = 0.0 if has_answered else before + step
        if before < _LOGGED_SECONDS <= self.silent_seconds:
            _log.warning("Spark's JVM does not answer", seconds=round(self.silent_seconds))

    def _ask_repeatedly(self, stopping: Event) -> None:
        while not stopping.wait(_ASK_SECONDS):
            with suppress(Exception):  # an error is an answer; the JVM's end is noticed elsewhere (`gateway`)
                self._ask()
            self._answers += 1
