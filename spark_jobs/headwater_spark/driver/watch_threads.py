"""Threads that run as long as an application, and request their answers from Kafka and Spark."""

import threading
import time
from collections.abc import Callable, Mapping

_Run = Callable[[threading.Event], None]


class WatchThreads:
    """`start` them, set `stopping`, `join` them.

    Args:
        runs: name of a thread → what it runs until the event that it gets is set.
        on_failure: gets what a thread raises; it has ended then.
    """

    def __init__(
        self, runs: Mapping[str, _Run], stopping: threading.Event, on_failure: Callable[[Exception], None]
    ) -> None:
        self._stopping = stopping
        self._on_failure = on_failure
        self._threads = [
            threading.Thread(target=self._execute, args=(run,), name=name, daemon=True)
            for name, run in runs.items()
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self, seconds: float) -> list[str]:
        """Wait until the threads have ended; return the names of those that have not in `seconds`.

        Such a thread waits for an answer, and ends after it. Threads that were not started have ended.
        """
        deadline = time.monotonic() + seconds
        for thread in self._threads:
            if thread.ident is not None:
                thread.join(max(0.0, deadline - time.monotonic()))
        return [thread.name for thread in self._threads if thread.is_alive()]

    def _execute(self, run: _Run) -> None:
        try:
            run(self._stopping)
        except Exception as error:  # noqa: BLE001 - of Kafka, Spark or its JVM
            self._on_failure(error)
