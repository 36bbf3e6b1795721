"""Aggregations in sliding windows (`KStreamSlidingWindowAggregate`).

A record creates up to three windows, unless they exist or would be empty: the window that ends at the record
(left), the window that starts 1 ms after it (right), and the window that starts 1 ms after the previous
record. Both ends of a window are inclusive.
"""

from collections.abc import Callable, Iterator

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SlidingWindow
from headwater_spark.engine.operators.aggregation import Functions, functions_of
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.operators.window_results import EmissionOnClose, WindowResults
from headwater_spark.engine.records import Headers, Value, Windowed


def sliding_aggregate(behavior: StreamAggregate, window: SlidingWindow, context: OperatorContext) -> Process:
    """Drop null keys and values, and records whose last window is closed."""
    difference, grace = window.difference_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    results = WindowResults(behavior, difference, context)
    observed = context.clock()
    emission = _emission(results, difference, context) if behavior.emit_on_close else None
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, "null key or value")
            return
        if emission is not None:
            emission.advance(timestamp)
        observed.now = max(observed.now, timestamp)
        close_time = observed.now - grace
        if timestamp + difference < close_time:
            drop(name, "window is closed")
            return
        arrival = _Arrival(results, functions, key, value, timestamp, headers, close_time, drop, name)
        if timestamp < difference:
            arrival.add_early()
            return
        arrival.add()
        if emission is not None:
            emission.check(close_time, headers)

    return process


@attrs.define
class _Arrival:
    """One record, to be added to the windows of its key."""

    _results: WindowResults
    _functions: Functions
    _key: Value
    _value: Value
    _time: int
    _headers: Headers
    _close_time: int
    _drop: Callable[[str, str], None]
    _name: str
    _plain: bytes = b""

    def __attrs_post_init__(self) -> None:
        self._plain = self._results.serialize_key(self._key)

    def add(self) -> None:
        """Add a record with a timestamp of at least the difference, from the newest window to the oldest."""
        time, difference = self._time, self._results.size
        known = set()
        left = right = None
        left_exists = right_exists = False
        previous = None
        first = max(0, time - 2 * difference)
        for start, total in self._results.store.backward_fetch_range(self._key, first, time + 1):
            known.add(start)
            end, latest = start + difference, total[1]
            if start == time + 1:
                right_exists = True
            elif end > time:
                right = right or total
                self._add(start, total)
            elif end == time:
                left_exists = True
                self._add(start, total)
                if latest >= time:
                    return  # an earlier record with this timestamp created all windows
                previous = latest
            else:
                left, previous = total, latest
                break
        if previous is not None and previous + 1 not in known and previous + 1 + difference >= time:
            self._create(previous + 1)
        if not left_exists:
            follows = left is not None and previous is not None and time - difference <= previous
            self._add(time - difference, (left[0], time) if left is not None and follows else self._empty())
        if not right_exists:
            self._create_right(right)

    def add_early(self) -> None:
        """Add a record with a timestamp below the difference: its left window starts at 0."""
        time = self._time
        known = set()
        combined = right = None
        right_exists = False
        previous = None
        for start, total in self._results.store.fetch_range(self._key, 0, time + 1):
            known.add(start)
            if start == 0:
                combined = total
                if total[1] < time:
                    previous = total[1]
            elif start <= time:
                right = total
                self._add(start, total)
            else:
                right_exists = True
        if right is None and combined is not None and combined[1] > time:
            right = combined
        if not right_exists:
            self._create_right(right)
        if previous is not None and previous + 1 not in known:
            self._create(previous + 1)
        self._add(0, self._empty() if combined is None else combined)

    def _empty(self) -> tuple[Value, int]:
        return self._functions.init(), self._time

    def _create(self, start: int) -> None:
        self._add(start, self._empty())

    def _add(self, start: int, total: tuple[Value, int]) -> None:
        """Add the record to a window, unless the window is closed."""
        window = Windowed(self._key, start, start + self._results.size)
        if window.end < self._close_time:
            self._drop(self._name, "window is closed")
            return
        old, time = total
        new = self._functions.add(self._key, self._value, old)
        time = self._time if old is None else max(time, self._time)
        self._results.update(window, self._plain, (new, old), time, (self._time, self._headers))

    def _create_right(self, right: tuple[Value, int] | None) -> None:
        """Create the right window with the total of the records after this one, if there are any."""
        if right is None or right[1] <= self._time:
            return
        window = Windowed(self._key, self._time + 1, self._time + 1 + self._results.size)
        value, time = right
        self._results.update(window, self._plain, (value, None), time, (self._time, self._headers))


def _emission(results: WindowResults, difference: int, context: OperatorContext) -> EmissionOnClose:
    store = results.store

    def closed(close_time: int, last: int) -> Iterator[tuple[Windowed, Value, int]] | None:
        last_start = close_time - difference - 1
        if last_start < 0:
            return None
        first_start = 0 if last == -1 else max(0, last - difference)
        return ((window, *total) for window, total in store.closed(first_start, last_start))

    return EmissionOnClose(context, results.store_name, store.segments.retention - difference, closed)
