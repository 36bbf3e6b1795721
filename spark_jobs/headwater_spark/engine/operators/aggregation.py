"""What aggregations share: their functions, and whether totals may stay values in a cache.

With windows, they also share the reads, writes and emission of results.

Windows follow `AbstractKStreamTimeWindowAggregateProcessor`.
"""

from collections.abc import Callable, Iterable
from struct import Struct
from typing import Final

import attrs

from headwater.model.behaviors import Aggregation, AggregationKind, StreamAggregate
from headwater.model.nodes import ProcessorNode
from headwater_spark.engine.operators.interface import NotRunnableError, OperatorContext
from headwater_spark.engine.operators.materialized import Forwarding, read_before_put
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Context, Headers, Value, Windowed
from headwater_spark.engine.serdes.plain import PLAIN
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import TIMESTAMP, read_timestamp, with_timestamp
from headwater_spark.engine.stores.segments import SEGMENT
from headwater_spark.engine.stores.windows import SessionBytes, TimestampedWindowBytes, window_end

STORED_COUNT: Final = Struct(">qq")
"""The timestamp and the count, as a store with timestamps has a count of longs."""
_START_AT = -12
_SEQUENCE_AT = -4
Closed = Callable[[int, int], Iterable[tuple[Windowed, Value, int]] | None]
"""(close time, close time of the last emission or -1) → windows closed since, with value and timestamp.

None = there can be none; this does not count as an emission.
"""

CachedStore = TimestampedKeyValueBytes | TimestampedWindowBytes | SessionBytes
AddToWindow = Callable[[Value, bytes, Value, int, int, Headers], None]
"""(key, serialized key, value, start of the window, timestamp, headers): adds a record to a window."""


@attrs.frozen
class Functions:
    """`init()`, `add(key, value, total)`, `remove(key, value, total)`, `merge(key, left, right)`.

    The `init` of a reduction returns None, and its `add` returns the value if the total is None.
    `add_again` is `add` for a total that is not None.
    """

    init: Callable[[], Value]
    add: Callable[[Value, Value, Value], Value]
    remove: Callable[[Value, Value, Value], Value]
    merge: Callable[[Value, Value, Value], Value]
    add_again: Callable[[Value, Value, Value], Value]


def functions_of(aggregation: Aggregation, context: OperatorContext) -> Functions:
    """Return the functions. Raises NotRunnableError if the document has no expressions for them."""
    match aggregation.kind:
        case AggregationKind.COUNT:
            return _COUNT
        case AggregationKind.REDUCE:
            return _reduce_functions(aggregation, context)
        case AggregationKind.AGGREGATE:
            return _aggregate_functions(aggregation, context)


_COUNT = Functions(
    init=lambda: 0,
    add=lambda _key, _value, total: total + 1,
    remove=lambda _key, _value, total: total - 1,
    merge=lambda _key, left, right: left + right,
    add_again=lambda _key, _value, total: total + 1,
)


def _reduce_functions(aggregation: Aggregation, context: OperatorContext) -> Functions:
    reduce = context.expression(aggregation.add, "key", "value", "total")

    def add(key: Value, value: Value, total: Value) -> Value:
        return value if total is None else reduce(key, value, total)

    return Functions(
        init=lambda: None,
        add=add,
        remove=_optional_function(aggregation.remove, context, "remove", "key", "value", "total"),
        merge=lambda key, left, right: add(key, right, left),
        add_again=reduce,
    )


def _aggregate_functions(aggregation: Aggregation, context: OperatorContext) -> Functions:
    add = context.expression(aggregation.add, "key", "value", "total")
    return Functions(
        init=context.expression(aggregation.init),
        add=add,
        add_again=add,
        remove=_optional_function(aggregation.remove, context, "remove", "key", "value", "total"),
        merge=_optional_function(aggregation.merge, context, "merge", "key", "left", "right"),
    )


def _optional_function(
    text: str | None, context: OperatorContext, what: str, *parameters: str
) -> Callable[..., Value]:
    """Return a function that raises when called without an expression: only some operators call it."""
    if text is not None:
        return context.expression(text, *parameters)

    def missing(*_: Value) -> Value:
        raise NotRunnableError(f"{context.node.name} has no expression for `{what}`")

    return missing


def counts_longs(behavior: StreamAggregate, value_serde: Serde) -> bool:
    """Return whether the totals are counts that the store has as longs."""
    return behavior.aggregation.kind is AggregationKind.COUNT and value_serde is PLAIN["long"]


def can_cache_values(behavior: StreamAggregate, context: OperatorContext, kind: type[CachedStore]) -> bool:
    """Return whether the store has a cache, no other node uses it, and the first failure ends the batch.

    If failures are skipped, each total is serialized at once: the previous one is kept if that fails.
    """
    if context.task.program.settings.on_processing_error != "fail" or behavior.emit_on_close:
        return False
    typed = context.task.stores.typed_store(behavior.store)
    users = [
        node
        for node in context.task.program.nodes
        if isinstance(node, ProcessorNode) and behavior.store in node.stores
    ]
    return type(typed) is kind and isinstance(typed.below, Cached) and len(users) == 1


class WindowResults:
    """Reads and updates the windows of an aggregation, and forwards the changes."""

    def __init__(self, behavior: StreamAggregate, size_ms: int, context: OperatorContext) -> None:
        self.store = context.store(behavior.store, TimestampedWindowBytes)
        self.store_name = behavior.store
        self.size = size_ms
        self._current = context.task.current
        self._read = read_before_put(self.store.below, context)
        self._serialize = self.store.value_serde.serialize
        self._deserialize = self.store.value_serde.deserialize
        self.serialize_key = self.store.key_serde.serialize
        self._forwarding = None if behavior.emit_on_close else self._forwarding_to(context, behavior)

    def adder(self, functions: Functions) -> AddToWindow:
        """Return a function that adds a record to a window in the store, and forwards the change."""
        init, add, current = functions.init, functions.add, self._current
        store, size, update = self.store, self.size, self._update
        read, deserialize = self._read, self._deserialize

        def add_to_window(  # noqa: PLR0917 - called for each record and window
            key: Value, key_bytes: bytes, value: Value, start: int, timestamp: int, headers: Headers
        ) -> None:
            entry_key = store.entry_key(key_bytes, start)
            stored = store.fetch_entry(entry_key, start, read)
            if stored is None:
                old, time = init(), timestamp
            else:
                old, time = deserialize(stored[TIMESTAMP:]), max(read_timestamp(stored), timestamp)
            new = add(key, value, old)
            window = Windowed(key, start, window_end(start, size))
            update(window, (key_bytes, entry_key), (new, old), time, (timestamp, headers, current.record))

        return add_to_window

    def update(
        self,
        window: Windowed,
        key: bytes,
        change: tuple[Value, Value],
        time: int,
        at: tuple[int, Headers],
    ) -> None:
        """Put a total. `change` is (new, old), `key` the serialized key of the window."""
        entry_key = self.store.entry_key(key, window.start)
        self._update(window, (key, entry_key), change, time, (*at, self._current.record))

    def _update(
        self,
        window: Windowed,
        keys: tuple[bytes, bytes],
        change: tuple[Value, Value],
        time: int,
        at: Context,
    ) -> None:
        """Put a total. `keys` are the serialized key of the window, and the key of its entry."""
        new, old = change
        stored = None if new is None else with_timestamp(self._serialize(new), time)
        self.store.put_entry(*keys, stored, window.start, at)
        if self._forwarding is not None:
            self._forwarding.forward(window, new, old, time, at[1])

    def _forwarding_to(self, context: OperatorContext, behavior: StreamAggregate) -> Forwarding:
        below, sends_old = self.store.below, behavior.sends_old
        return Forwarding(below, context, self._windowed_of, self._deserialize, sends_old=sends_old)

    def _windowed_of(self, entry_key: bytes) -> Windowed:
        start = int.from_bytes(entry_key[_START_AT:_SEQUENCE_AT], "big")
        key = self.store.key_serde.deserialize(entry_key[SEGMENT:_START_AT])
        return Windowed(key, start, window_end(start, self.size))


class EmissionOnClose:
    """Emits each window once, when stream time passes its end plus grace.

    Kafka Streams searches closed windows at most once per interval of wall-clock time
    (`__emit.interval.ms.kstreams.windowed.aggregation__`), in which windows may expire. The wall-clock time
    is constant within a batch, so a deferred emission is done when the batch ends, or before windows expire.

    Args:
        kept_ms: How far stream time may pass the last emission before closed windows expire.
        closed: Finds the closed windows.
    """

    def __init__(self, context: OperatorContext, store: str, kept_ms: int, closed: Closed) -> None:
        self._last = context.clock(store)  # the name that Kafka Streams commits it under
        self._next = context.clock(f"{store}/emission")
        self._wall_clock = context.task.wall_clock
        self._interval = context.settings.emit_interval_ms
        self._kept = kept_ms
        self._closed = closed
        self._forward = context.forward
        self._deferred: tuple[int, Headers] | None = None
        context.task.on_batch_end(self._emit_deferred)

    def advance(self, timestamp: int) -> None:
        """Emit deferred windows if stream time `timestamp` would expire them. Call it before any write."""
        if self._deferred is not None and timestamp - self._kept >= self._last.now:
            self._emit_deferred()

    def check(self, close_time: int, headers: Headers) -> None:
        """Emit the closed windows, or defer the emission until the interval has passed."""
        now = self._wall_clock()
        if now < self._next.now:
            self._deferred = close_time, headers
            return
        self._next.now = now + self._interval
        self._emit(close_time, headers)

    def _emit_deferred(self) -> None:
        if self._deferred is not None:
            self._emit(*self._deferred)

    def _emit(self, close_time: int, headers: Headers) -> None:
        self._deferred = None
        last = self._last.now
        closed = self._closed(close_time, last) if last == -1 or last < close_time else None
        if closed is not None:
            for window, value, time in closed:
                self._forward(window, (value, None, True), time, headers)
            self._last.now = close_time
