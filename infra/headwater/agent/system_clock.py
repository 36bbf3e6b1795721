"""The clock of the machine, and a wait that another thread can end."""

import random
import time
from contextlib import suppress
from queue import Empty, SimpleQueue


class SystemClock:
    """A `ports.Clock`. Other threads and signal handlers may call `wake`."""

    def __init__(self) -> None:
        # A signal handler may run at any moment of `wait`, in the same thread. `Event.set` would then wait
        # for a lock that `Event.wait` or `Event.clear` has acquired; `SimpleQueue.put` is reentrant.
        self._wakes: SimpleQueue[None] = SimpleQueue()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def jitter(self) -> float:
        return random.random()  # noqa: S311 - spreads retries, guards nothing

    def wait(self, seconds: float) -> None:
        with suppress(Empty):
            self._wakes.get(timeout=seconds)
            for _ in range(self._wakes.qsize()):  # several calls of `wake` end one wait
                self._wakes.get_nowait()

    def wake(self) -> None:
        self._wakes.put(None)
