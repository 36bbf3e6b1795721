"""What time-windowed aggregations share: reads and writes of the store, and emission on close.

Follows `AbstractKStreamTimeWindowAggregateProcessor`.
"""

from collections.abc import Callable, Iterable

from infra.model.behaviors import StreamAggregate
from spark_jobs.runtime.engine.operators.interface import OperatorContext
from spark_jobs.runtime.engine.operators.materialized import Forwarding
from spark_jobs.runtime.engine.records import Headers, Value, Windowed
from spark_jobs.runtime.engine.stores.layers import TIMESTAMP, read_timestamp, with_timestamp
from spark_jobs.runtime.engine.stores.segments import SEGMENT
from spark_jobs.runtime.engine.stores.windows import TimestampedWindowBytes

_START_AT = -12
_SEQUENCE_AT = -4


class WindowResults:
    """The store of a windowed aggregation by key and start, and its node's changes."""

    def __init__(self, behavior: StreamAggregate, size_ms: int, context: OperatorContext) -> None:
        self.store = context.store(behavior.store, TimestampedWindowBytes)
        self.store_name = behavior.store
        self.size = size_ms
        self._on_close = behavior.emit_on_close
        self._current = context.task.current
        self._serialize = self.store.value_serde.serialize
        self._deserialize = self.store.value_serde.deserialize
        self.serialize_key = self.store.key_serde.serialize
        self._forwarding = Forwarding(
            self.store.below,
            context,
            self._windowed_of,
            self._deserialize,
            sends_old=behavior.sends_old,
        )

    def get(self, key: bytes, start: int) -> tuple[Value, int] | None:
        """(total, timestamp) of a window."""
        stored = self.store.fetch_bytes(key, start)
        if stored is None:
            return None
        return self._deserialize(stored[TIMESTAMP:]), read_timestamp(stored)

    def update(
        self,
        window: Windowed,
        key: bytes,
        change: tuple[Value, Value],
        time: int,
        at: tuple[int, Headers],
    ) -> None:
        """`change` is (new, old), `key` the bytes of the window's key."""
        new, old = change
        stored = None if new is None else with_timestamp(self._serialize(new), time)
        now, headers = at
        self.store.put_bytes(key, stored, window.start, (now, headers, self._current.record))
        if not self._on_close:
            self._forwarding.forward(window, new, old, time, headers)

    def _windowed_of(self, place: bytes) -> Windowed:
        start = int.from_bytes(place[_START_AT:_SEQUENCE_AT], "big")
        key = self.store.key_serde.deserialize(place[SEGMENT:_START_AT])
        return Windowed(key, start, start + self.size)


Closed = Callable[[int, int], Iterable[tuple[Windowed, Value, int]] | None]
"""(close time, that of the last emission or -1) → windows closed since with value and timestamp.

None = there can be none; then this does not count as an emission.
"""


class EmissionOnClose:
    """Emits windows once, when stream time has passed their end and grace.

    Kafka Streams looks for them at most once an interval of wall-clock time, during which they may expire
    (`__emit.interval.ms.kstreams.windowed.aggregation__`). A batch has one instant of wall-clock time, so
    here what was put off is emitted when the batch ends, and before it would expire.

    Args:
        context: The node's.
        store: The name of the store.
        kept_ms: How far stream time may go beyond the last emission before closed windows expire.
        closed: Finds the windows.
    """

    def __init__(self, context: OperatorContext, store: str, kept_ms: int, closed: Closed) -> None:
        self._last = context.clock(store)  # the name that Kafka Streams commits it under
        self._next = context.clock(f"{store}/emission")
        self._wall_clock = context.task.wall_clock
        self._interval = context.settings.emit_interval_ms
        self._kept = kept_ms
        self._closed = closed
        self._forward = context.forward
        self._put_off: tuple[int, Headers] | None = None
        context.task.on_batch_end(self._catch_up)

    def advance(self, timestamp: int) -> None:
        """To be called before stream time moves on to `timestamp` and the store with it."""
        if self._put_off is not None and timestamp - self._kept >= self._last.now:
            self._catch_up()

    def check(self, close_time: int, headers: Headers) -> None:
        """Emits what closed, if it is time to look."""
        now = self._wall_clock()
        if now < self._next.now:
            self._put_off = close_time, headers
            return
        self._next.now = now + self._interval
        self._emit(close_time, headers)

    def _catch_up(self) -> None:
        if self._put_off is not None:
            self._emit(*self._put_off)

    def _emit(self, close_time: int, headers: Headers) -> None:
        self._put_off = None
        last = self._last.now
        closed = self._closed(close_time, last) if last == -1 or last < close_time else None
        if closed is not None:
            for window, value, time in closed:
                self._forward(window, (value, None, True), time, headers)
            self._last.now = close_time
