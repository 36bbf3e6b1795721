"""Aggregations of streams with windows: time windows, sliding windows and sessions."""

from collections.abc import Callable, Iterator, Sequence

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)
from headwater_spark.engine.key_counts import CLOSED, NO_KEY, NO_KEY_OR_VALUE, TimeWindows
from headwater_spark.engine.operators.aggregation import (
    AddToWindow,
    EmissionOnClose,
    Functions,
    WindowResults,
    can_cache_values,
    counts_longs,
    functions_of,
)
from headwater_spark.engine.operators.cached_aggregate import add_to_cached_windows
from headwater_spark.engine.operators.cached_sessions import cached_sessions
from headwater_spark.engine.operators.cached_sliding import cached_sliding_counts
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.operators.materialized import Forwarding
from headwater_spark.engine.records import Context, Headers, Value, Windowed
from headwater_spark.engine.stores.segments import SEGMENT
from headwater_spark.engine.stores.windows import SessionBytes, TimestampedWindowBytes

_FOREVER = 2**63 - 1
WindowStarts = Callable[[int], Sequence[int]]
"""Timestamp → starts of the windows that contain it, in order"""
_END_AT = -16
_START_AT = -8
Changes = Callable[[tuple[bytes, bytes], Windowed, Value, Value, Context], None]
"""((serialized key, entry key), session, new, old, context): changes a session."""


def window_aggregate(
    behavior: StreamAggregate,
    window: TumblingWindow | HoppingWindow | UnlimitedWindow,
    context: OperatorContext,
) -> Process:
    """Drop null keys, not null values. A window closes when stream time passes its end plus grace."""
    size, grace, starts = _window_shape(window)
    functions = functions_of(behavior.aggregation, context)
    results = WindowResults(behavior, size, context)
    add_to_window = results.adder(functions)
    regular = regular_windows(window)
    if can_cache_values(behavior, context, TimestampedWindowBytes):
        add_to_window = add_to_cached_windows(behavior, size, functions, context, add_to_window)
        if regular is not None:
            add_to_window = _count_in_columns(behavior, regular, context, add_to_window)
    serialize_key = results.serialize_key
    observed = context.clock()
    emission = _time_window_emission(results, size, starts, context) if behavior.emit_on_close else None
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(name, NO_KEY)
            return
        if emission is not None:
            emission.advance(timestamp)
        now = observed.now
        if timestamp > now:
            now = observed.now = timestamp
        close_time = now - grace
        key_bytes = serialize_key(key)
        for start in starts(timestamp):
            end = start + size if size != _FOREVER else _FOREVER
            if end <= close_time:
                drop(name, CLOSED)
            else:
                add_to_window(key, key_bytes, value, start, timestamp, headers)
        if emission is not None:
            emission.check(close_time, headers)

    return process


def _count_in_columns(
    behavior: StreamAggregate, window: TimeWindows, context: OperatorContext, add_to_window: AddToWindow
) -> AddToWindow:
    """Let the node count whole batches if its cache is its own; return how it adds a record."""
    from headwater_spark.engine.operators.cached_windows import (  # noqa: PLC0415 - numpy starts threads
        CachedCounts,
        counts_alone,
    )

    if not counts_alone(behavior, window, context):
        return add_to_window
    counts = CachedCounts(behavior, window, context, add_to_window)
    context.task.window_counts[context.node.name] = counts
    return counts.add_to_window


def _window_shape(window: TumblingWindow | HoppingWindow | UnlimitedWindow) -> tuple[int, int, WindowStarts]:
    """Return size, grace, and the function that returns the windows of a timestamp."""
    match window:
        case TumblingWindow(size, grace):
            return size, grace, lambda time: (time - time % size,)
        case HoppingWindow(size, advance, grace):
            return size, grace, lambda time: _hop_starts(time, size, advance)
        case UnlimitedWindow(first):
            return _FOREVER, 0, lambda time: range(first, first + 1) if time >= first else range(0)


def regular_windows(window: Window | None) -> TimeWindows | None:
    """Return tumbling or hopping windows; None = other windows."""
    match window:
        case TumblingWindow(size, grace):
            return TimeWindows(size, size, grace)
        case HoppingWindow(size, advance, grace):
            return TimeWindows(size, advance, grace)
    return None


def _hop_starts(time: int, size: int, advance: int) -> range:
    return range(max(0, time - size + advance) // advance * advance, time + 1, advance)


def _time_window_emission(
    results: WindowResults, size: int, starts: WindowStarts, context: OperatorContext
) -> EmissionOnClose:
    store = results.store

    def closed(close_time: int, last: int) -> Iterator[tuple[Windowed, Value, int]] | None:
        last_start = close_time - size
        first_start = 0 if last == -1 else max(0, last - size) + 1
        if last_start < 0 or (last != -1 and starts(last_start) == starts(first_start - 1)):
            return None
        return ((window, *total) for window, total in store.closed_windows(first_start, last_start))

    return EmissionOnClose(context, results.store_name, store.segments.retention - size, closed)


def sliding_aggregate(behavior: StreamAggregate, window: SlidingWindow, context: OperatorContext) -> Process:
    """Drop null keys and values, and records whose last window is closed."""
    general = _windows_of_store(behavior, window, context)
    if can_cache_values(behavior, context, TimestampedWindowBytes):
        store = context.store(behavior.store, TimestampedWindowBytes)
        if counts_longs(behavior, store.value_serde):
            from headwater_spark.engine.operators.counted_sliding import (  # noqa: PLC0415 - numpy starts threads
                SlidingCounts,
            )

            process = cached_sliding_counts(behavior, window, context, general)
            context.task.window_counts[context.node.name] = SlidingCounts(behavior, window, context)
            return process
    return general


def _windows_of_store(behavior: StreamAggregate, window: SlidingWindow, context: OperatorContext) -> Process:
    difference, grace = window.difference_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    results = WindowResults(behavior, difference, context)
    observed = context.clock()
    emission = _sliding_window_emission(results, difference, context) if behavior.emit_on_close else None
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        if emission is not None:
            emission.advance(timestamp)
        observed.now = max(observed.now, timestamp)
        close_time = observed.now - grace
        if timestamp + difference < close_time:
            drop(name, CLOSED)
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
            self._drop(self._name, CLOSED)
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


def _sliding_window_emission(
    results: WindowResults, difference: int, context: OperatorContext
) -> EmissionOnClose:
    store = results.store

    def closed(close_time: int, last: int) -> Iterator[tuple[Windowed, Value, int]] | None:
        last_start = close_time - difference - 1
        if last_start < 0:
            return None
        first_start = 0 if last == -1 else max(0, last - difference)
        return ((window, *total) for window, total in store.closed_windows(first_start, last_start))

    return EmissionOnClose(context, results.store_name, store.segments.retention - difference, closed)


def session_aggregate(behavior: StreamAggregate, window: SessionWindow, context: OperatorContext) -> Process:
    """Drop null keys. Merge the sessions that a record connects into one, oldest first, and delete them."""
    general = _sessions_of_store(behavior, window, context)
    if not can_cache_values(behavior, context, SessionBytes):
        return general
    from headwater_spark.engine.operators.counted_sessions import (  # noqa: PLC0415 - numpy starts threads
        SessionCounts,
        counts_sessions_alone,
    )

    process = cached_sessions(behavior, window, context, general)
    if counts_sessions_alone(behavior, window, context):
        context.task.window_counts[context.node.name] = SessionCounts(behavior, window, context, general)
    return process


def _sessions_of_store(behavior: StreamAggregate, window: SessionWindow, context: OperatorContext) -> Process:
    gap, grace = window.gap_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    init, add, merge = functions.init, functions.add, functions.merge
    store = context.store(behavior.store, SessionBytes)
    find, change = store.find_entries, _session_changes(behavior, store, context)
    serialize_key, deserialize = store.key_serde.serialize, store.value_serde.deserialize
    current = context.task.current
    observed = context.clock()
    emission = _session_emission(behavior, store, context) if behavior.emit_on_close else None
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(name, NO_KEY)
            return
        if emission is not None:
            emission.advance(timestamp)
        observed.now = max(observed.now, timestamp)
        close_time = observed.now - grace - gap
        key_bytes = serialize_key(key)
        connected = [
            (entry_key, Windowed(key, first, last), deserialize(stored))
            for entry_key, first, last, stored in find(key_bytes, timestamp - gap, timestamp + gap)
        ]
        start = end = timestamp
        total = init()
        for _, (_, first, last), part in connected:
            total = merge(key, total, part)
            start, end = min(start, first), max(end, last)
        if end < close_time:
            drop(name, CLOSED)
        else:
            at = (timestamp, headers, current.record)
            if (start, end) != (timestamp, timestamp):
                for entry_key, session, part in connected:
                    change((key_bytes, entry_key), session, None, part, at)
            keys = key_bytes, store.entry_key(key_bytes, start, end)
            change(keys, Windowed(key, start, end), add(key, value, total), None, at)
        if emission is not None:
            emission.check(close_time, headers)

    return process


def _session_changes(behavior: StreamAggregate, store: SessionBytes, context: OperatorContext) -> Changes:
    """Return a function that puts a session, and forwards the change without headers."""
    forwarding = Forwarding(
        store.below,
        context,
        lambda entry_key: _session_of(entry_key, store),
        store.value_serde.deserialize,
        sends_old=behavior.sends_old,
        timestamped=False,
    )
    serialize, put = store.value_serde.serialize, store.put_entry
    forwards_now = not behavior.emit_on_close and not forwarding.cached

    def change(keys: tuple[bytes, bytes], session: Windowed, new: Value, old: Value, at: Context) -> None:
        put(*keys, None if new is None else serialize(new), session.end, at)
        if forwards_now:
            forwarding.forward(session, new, old, session.end, ())

    return change


def _session_of(entry_key: bytes, store: SessionBytes) -> Windowed:
    end = int.from_bytes(entry_key[_END_AT:_START_AT], "big")
    start = int.from_bytes(entry_key[_START_AT:], "big")
    return Windowed(store.key_serde.deserialize(entry_key[SEGMENT:_END_AT]), start, end)


def _session_emission(
    behavior: StreamAggregate, store: SessionBytes, context: OperatorContext
) -> EmissionOnClose:
    def closed(close_time: int, last: int) -> Iterator[tuple[Windowed, Value, int]] | None:
        first_end, last_end = max(0, last), close_time - 1
        if last_end < first_end:
            return None
        ended = store.sessions_ended(first_end, last_end)
        return ((session, value, session.end) for session, value in ended)

    return EmissionOnClose(context, behavior.store, store.segments.retention, closed)
