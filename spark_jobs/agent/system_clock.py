"""The clock of the machine, and a wait that another thread can end."""

import random
import time
from threading import Event


class SystemClock:
    """A `ports.Clock`. Other threads and signal handlers may call `wake`."""

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
