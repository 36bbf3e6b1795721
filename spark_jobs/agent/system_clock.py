"""The machine's clock, and a wait that can be cut short."""

import random
import time
from threading import Event


class SystemClock:
    """A `ports.Clock`. `wake` may be called by other threads and by signal handlers."""

    def __init__(self) -> None:
        self._woken = Event()

    def monotonic_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000

    def wall_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def jitter(self) -> float:
        return random.random()  # noqa: S311 - spreads retries, guards nothing

    def wait(self, seconds: float) -> None:
        self._woken.wait(seconds)
        self._woken.clear()

    def wake(self) -> None:
        self._woken.set()
