"""Aggregations in tumbling, hopping and unlimited windows (`KStreamWindowAggregate`)."""

from collections.abc import Callable, Iterator

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import HoppingWindow, TumblingWindow, UnlimitedWindow
from headwater_spark.engine.operators.aggregation import functions_of
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.operators.window_results import EmissionOnClose, WindowResults
from headwater_spark.engine.records import Headers, Value, Windowed

_FOREVER = 2**63 - 1

WindowStarts = Callable[[int], range]
"""Timestamp → starts of the windows that contain it, in order"""


def window_aggregate(
    behavior: StreamAggregate,
    window: TumblingWindow | HoppingWindow | UnlimitedWindow,
    context: OperatorContext,
) -> Process:
    """Drop null keys, not null values. A window closes when stream time passes its end plus grace."""
    size, grace, starts = _shape(window)
    functions = functions_of(behavior.aggregation, context)
    init, add = functions.init, functions.add
    results = WindowResults(behavior, size, context)
    get, update, serialize_key = results.get, results.update, results.serialize_key
    observed = context.clock()
    emission = _emission(results, size, starts, context) if behavior.emit_on_close else None
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(name, "null key")
            return
        if emission is not None:
            emission.advance(timestamp)
        observed.now = max(observed.now, timestamp)
        close_time = observed.now - grace
        plain = serialize_key(key)
        for start in starts(timestamp):
            end = start + size if size != _FOREVER else _FOREVER
            if end <= close_time:
                drop(name, "window is closed")
                continue
            known = get(plain, start)
            if known is None:
                old, time = init(), timestamp
            else:
                old, time = known
                time = max(time, timestamp)
            new = add(key, value, old)
            update(Windowed(key, start, end), plain, (new, old), time, (timestamp, headers))
        if emission is not None:
            emission.check(close_time, headers)

    return process


def _shape(window: TumblingWindow | HoppingWindow | UnlimitedWindow) -> tuple[int, int, WindowStarts]:
    """Return size, grace, and the function that returns the windows of a timestamp."""
    match window:
        case TumblingWindow(size, grace):
            return size, grace, lambda time: range(time - time % size, time + 1, size)
        case HoppingWindow(size, advance, grace):
            return size, grace, lambda time: _hops(time, size, advance)
        case UnlimitedWindow(first):
            return _FOREVER, 0, lambda time: range(first, first + 1) if time >= first else range(0)


def _hops(time: int, size: int, advance: int) -> range:
    return range(max(0, time - size + advance) // advance * advance, time + 1, advance)


def _emission(
    results: WindowResults, size: int, starts: WindowStarts, context: OperatorContext
) -> EmissionOnClose:
    store = results.store

    def closed(close_time: int, last: int) -> Iterator[tuple[Windowed, Value, int]] | None:
        last_start = close_time - size
        first_start = 0 if last == -1 else max(0, last - size) + 1
        if last_start < 0 or (last != -1 and starts(last_start) == starts(first_start - 1)):
            return None
        return ((window, *total) for window, total in store.closed(first_start, last_start))

    return EmissionOnClose(context, results.store_name, store.segments.retention - size, closed)
