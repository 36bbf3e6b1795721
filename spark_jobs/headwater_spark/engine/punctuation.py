"""Punctuation schedules of a task (`PunctuationQueue`, `PunctuationSchedule`)."""

from collections import Counter
from collections.abc import Callable, Iterator

from headwater_spark.engine.clocks import UNSET, Clock, Clocks
from headwater_spark.processors import PunctuationType


class Schedule:
    """One call of `schedule`. Its next time is a clock of the task, so it outlives the batch."""

    __slots__ = ("_callback", "_interval", "_next", "cancelled")

    def __init__(self, interval_ms: int, next_time: Clock, callback: Callable[[int], None]) -> None:
        self._interval = interval_ms
        self._next = next_time
        self._callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True

    @property
    def due(self) -> int:
        return self._next.now

    def start(self, first: int) -> None:
        """Set the first time, unless an earlier batch has set it."""
        if self._next.now == UNSET:
            self._next.now = first

    def call(self, now: int) -> None:
        """Call back once, however many intervals have passed; the next time is a multiple of the interval."""
        due = self._next.now
        self._next.now = due + ((now - due) // self._interval + 1) * self._interval
        self._callback(now)


class Punctuations:
    """The schedules of a task, by the kind of time that they follow."""

    def __init__(self, clocks: Clocks) -> None:
        self._clocks = clocks
        self._schedules: dict[PunctuationType, list[Schedule]] = {kind: [] for kind in PunctuationType}
        self._number_by_node: Counter[str] = Counter()

    def schedules(self, kind: PunctuationType) -> list[Schedule]:
        """Return the schedules of one kind: the list itself, which grows with each call of `schedule`."""
        return self._schedules[kind]

    def schedule(
        self,
        node: str,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
        wall_clock_ms: int,
    ) -> Schedule:
        """Add a schedule. A node's schedules are identified by the order in which it adds them."""
        self._number_by_node[node] += 1
        clock = self._clocks.clock(f"{node}/schedule/{self._number_by_node[node]}")
        schedule = Schedule(interval_ms, clock, callback)
        schedule.start(0 if kind is PunctuationType.STREAM_TIME else wall_clock_ms + interval_ms)
        self._schedules[kind].append(schedule)
        return schedule

    def due(self, kind: PunctuationType, now: int) -> Iterator[Schedule]:
        """Yield each schedule that is due at `now`, earliest first; the caller calls it at once.

        Also schedules that a callback has added meanwhile (`PunctuationQueue#maybePunctuate`).
        """
        schedules = self._schedules[kind]
        known = -1
        while len(schedules) != known:
            known = len(schedules)
            due = [schedule for schedule in schedules if not schedule.cancelled and schedule.due <= now]
            for schedule in sorted(due, key=lambda schedule: schedule.due):
                if not schedule.cancelled:
                    yield schedule
                if len(schedules) != known:
                    break
