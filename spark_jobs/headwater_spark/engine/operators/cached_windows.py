"""Aggregations by key and time window with a cache that no other node reads: totals stay values.

See `cached_aggregate`; a total is one window of a key here.
"""

from headwater.model.behaviors import AggregationKind, StreamAggregate
from headwater_spark.engine.operators.aggregation import AddToWindow, Functions
from headwater_spark.engine.operators.cached_aggregate import Totals
from headwater_spark.engine.operators.interface import OperatorContext
from headwater_spark.engine.records import Headers, Value, Windowed
from headwater_spark.engine.stores.record_cache import header_bytes
from headwater_spark.engine.stores.windows import TimestampedWindowBytes, window_end


def add_to_cached_windows(
    behavior: StreamAggregate,
    size: int,
    functions: Functions,
    context: OperatorContext,
    general: AddToWindow,
) -> AddToWindow:
    """Return a function that keeps the totals of a batch as values; `general` updates the store."""
    store = context.store(behavior.store, TimestampedWindowBytes)
    totals = Totals(store, behavior, context, functions.init)
    entry_key_of, current = store.entry_key, context.task.current
    cache, pending, reserve = totals.cache, totals.pending, totals.reserve
    take, begin, init, add = pending.pop, totals.starter(), functions.init, functions.add
    add_again, longest, grow = functions.add_again, totals.characters, totals.grow
    has_fixed_size = behavior.aggregation.kind is AggregationKind.COUNT

    def add_to_window(  # noqa: PLR0917 - called for each record and window
        key: Value, key_bytes: bytes, value: Value, start: int, timestamp: int, headers: Headers
    ) -> None:
        if cache.limit < 0 or (headers and not reserve(header_bytes(headers))):
            general(key, key_bytes, value, start, timestamp, headers)
            return
        entry_key = entry_key_of(key_bytes, start)
        known = take(entry_key, None)
        if known is None:
            started = begin(entry_key, timestamp)
            if started is None:
                general(key, key_bytes, value, start, timestamp, headers)
                return
            window = Windowed(key, start, window_end(start, size))
            total, time = add(key, value, started[0]), started[1]
        elif known[1] is None:
            window, total, time = known[0], add(key, value, init()), timestamp
        else:
            window, total, time = known[0], add_again(key, value, known[1]), max(known[2], timestamp)
        pending[entry_key] = (window, total, time, timestamp, headers, current.record)
        if not has_fixed_size and (type(total) is not str or len(total) > longest):
            grow(entry_key, total)

    return add_to_window
