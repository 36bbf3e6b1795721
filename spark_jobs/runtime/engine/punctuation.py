"""Punctuation schedules of a task (`PunctuationQueue`, `PunctuationSchedule`)."""

from collections.abc import Callable

from spark_jobs.runtime.engine.stores.clock import Clock

_UNSET = -1


class Schedule:
    """One call of `schedule`: when it is due next outlives the batch in a clock of the task."""

    __slots__ = ("_callback", "_interval", "_next", "cancelled")

    def __init__(self, interval_ms: int, following: Clock, callback: Callable[[int], None]) -> None:
        self._interval = interval_ms
        self._next = following
        self._callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def due(self) -> int:
        return self._next.now

    def start(self, first: int) -> None:
        """Sets the first time, unless an earlier batch did."""
        if self._next.now == _UNSET:
            self._next.now = first

    def call(self, now: int) -> None:
        """Calls back once, however many intervals have passed, and sets the next time on the grid."""
        due = self._next.now
        self._next.now = due + ((now - due) // self._interval + 1) * self._interval
        self._callback(now)


class Schedules:
    """Those of one kind of time, called in the order in which they are due."""

    def __init__(self) -> None:
        self.all: list[Schedule] = []

    def add(self, schedule: Schedule) -> None:
        self.all.append(schedule)

    def punctuate(self, now: int) -> None:
        """Calls what is due at `now`, each once."""
        due = [schedule for schedule in self.all if not schedule.cancelled and schedule.due <= now]
        for schedule in sorted(due, key=lambda schedule: schedule.due):
            if not schedule.cancelled:
                schedule.call(now)
