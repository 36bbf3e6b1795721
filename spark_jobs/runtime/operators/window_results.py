"""What time-windowed aggregations share: reads and writes of the store, and emission on close.

Follows `AbstractKStreamTimeWindowAggregateProcessor`.
"""

from collections.abc import Callable

from infra.model.behaviours import StreamAggregate
from spark_jobs.runtime.operators.interface import OperatorContext
from spark_jobs.runtime.operators.materialized import Forwarding
from spark_jobs.runtime.records import Headers, Value, Windowed
from spark_jobs.runtime.stores.layers import TIMESTAMP, read_timestamp, with_timestamp
from spark_jobs.runtime.stores.segments import SEGMENT
from spark_jobs.runtime.stores.windows import TimestampedWindowBytes

_START_AT = -12
_SEQUENCE_AT = -4


class WindowResults:
    """The store of a windowed aggregation by key and start, and its node's changes."""

    def __init__(self, behaviour: StreamAggregate, size_ms: int, context: OperatorContext) -> None:
        self.store = context.store(behaviour.store, TimestampedWindowBytes)
        self.store_name = behaviour.store
        self.size = size_ms
        self._on_close = behaviour.emit_on_close
        self._ambient = context.task.ambient
        self._serialize = self.store.value_serde.serialize
        self._deserialize = self.store.value_serde.deserialize
        self.serialize_key = self.store.key_serde.serialize
        self._forwarding = Forwarding(
            self.store.below,
            context,
            self._windowed_of,
            self._deserialize,
            sends_old=behaviour.sends_old,
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
        self.store.put_bytes(key, stored, window.start, (now, headers, self._ambient.record))
        if not self._on_close:
            self._forwarding.forward(window, new, old, time, headers)

    def _windowed_of(self, place: bytes) -> Windowed:
        start = int.from_bytes(place[_START_AT:_SEQUENCE_AT], "big")
        key = self.store.key_serde.deserialize(place[SEGMENT:_START_AT])
        return Windowed(key, start, start + self.size)


Range = Callable[[int, int], tuple[int, int] | None]
"""(close time, close time of the last emission or -1) → first and last start to emit; None = nothing new."""


class EmissionOnClose:
    """Emits windows once, when stream time has passed their end and grace.

    At most once an interval of wall-clock time (`__emit.interval.ms.kstreams.windowed.aggregation__`).
    """

    def __init__(self, context: OperatorContext, store: str) -> None:
        self._last = context.clock(f"{store}/closed")
        self._next = context.clock(f"{store}/emission")
        self._wall_clock = context.task.wall_clock
        self._interval = context.settings.emit_interval_ms

    @property
    def last(self) -> int:
        """The close time of the last emission, -1 before the first."""
        return self._last.now

    def due(self, close_time: int) -> bool:
        """Whether to look for closed windows now."""
        now = self._wall_clock()
        if now < self._next.now:
            return False
        self._next.now = now + self._interval
        return self._last.now == -1 or self._last.now < close_time

    def done(self, close_time: int) -> None:
        self._last.now = close_time
