"""Report that a start waits for executors: a job of Spark waits for them silently, and without a limit."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

import structlog

_log = structlog.get_logger(__name__)
_POLL_SECONDS = 1.0
_REPORT_SECONDS = 30.0


class StartSteps(Protocol):
    """The steps of a start (`StartingApplication`)."""

    def begin(self, step: str) -> None:
        """Log a step, and show it in the status."""
        ...


@contextmanager
def wait_reported(
    steps: StartSteps, step: str, master: str, slots: Callable[[], int], poll_seconds: float = _POLL_SECONDS
) -> Iterator[None]:
    """Begin `step`; while the block runs and Spark has no executor, show that the start waits for one.

    `slots` returns the number of tasks that the executors can run at the same time. Without executors, a
    warning is logged every half minute.
    """
    ended = threading.Event()

    def watch() -> None:
        is_waiting, since = False, time.monotonic()
        reported_at = since
        while not ended.wait(poll_seconds):
            try:
                has_none = slots() == 0
            except Exception:  # noqa: BLE001 - of the JVM, which may have ended: the start reports that itself
                return
            if ended.is_set():
                return
            if has_none is not is_waiting:
                is_waiting = has_none
                steps.begin(f"waiting for executors of {master}" if has_none else step)
            now = time.monotonic()
            if has_none and now - reported_at >= _REPORT_SECONDS:
                reported_at = now
                _log.warning(
                    "Spark has no executors",
                    master=master,
                    seconds=round(now - since),
                    fix="check that workers run, and that other applications leave cores and memory free",
                )

    steps.begin(step)
    watcher = threading.Thread(target=watch, name="executors", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
