"""Stream-stream joins and self-joins (`KStreamJoinWindow`, `KStreamKStreamJoin`, `KStreamKStreamSelfJoin`).

Each side puts its records into a window store and searches the other side's store for partners. In a left or
outer join, a record without a partner waits in a list store, ordered by time, until its window closes: then
it is joined with null. With an eager window there is no such store: it is joined with null at once.
"""

from collections.abc import Callable, Mapping

import attrs

from headwater.model.behaviors import JoinWindowed, StreamSelfJoin, StreamStreamJoin
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.records import Clock, CurrentRecord, Headers, Value
from headwater_spark.engine.stores.key_value import ListBytes
from headwater_spark.engine.stores.windows import WindowBytes

NEVER = 2**63 - 1
Join = Callable[[Value, Value, Value], Value]
"""(left, right, key) → joined value"""


def join_windowed(behavior: JoinWindowed, context: OperatorContext) -> Process:
    """Forward, then put: a record must not find itself. Null keys have no partners, so they are not put."""
    forward, current = context.forward, context.task.current
    store = context.store(behavior.store, WindowBytes)
    put, serialize_key, serialize = store.put_bytes, store.key_serde.serialize, store.value_serde.serialize

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        forward(key, value, timestamp, headers)
        if key is not None:
            stored = None if value is None else serialize(value)
            put(serialize_key(key), stored, timestamp, (timestamp, headers, current.record))

    return process


@attrs.frozen
class _Times:
    """The times that both sides of a join share (`TimeTracker`).

    `earliest` is a lower bound for the times of waiting records: it saves searches. `next_emission` is a
    wall-clock time, as emission is throttled.
    """

    stream: Clock
    earliest: Clock
    next_emission: Clock

    @classmethod
    def from_context(cls, shared: str, context: OperatorContext) -> "_Times":
        clocks = [context.clock(f"{shared}/{what}") for what in ("time", "earliest", "emission")]
        times = cls(*clocks)
        if times.earliest.now < 0:
            times.earliest.now = NEVER
        return times


def stream_stream_join(behavior: StreamStreamJoin, context: OperatorContext) -> Process:
    """Build one side of the join. `outer`: records of this side without a partner are joined with null."""
    is_left, task, name = behavior.is_left, context.task, context.node.name
    forward = context.forward
    window, kind = behavior.window, behavior.kind
    before, after = (window.before_ms, window.after_ms) if is_left else (window.after_ms, window.before_ms)
    outer = kind == "outer" or (kind == "left" and is_left)
    join = _value_joiner(behavior, context)
    other_store = context.store(behavior.other_store, WindowBytes)
    fetch, serialize_key = other_store.fetch_values, other_store.key_serde.serialize
    deserialize = other_store.value_serde.deserialize
    waiting = _Waiting.from_behavior(behavior, after, context) if behavior.shared is not None else None
    stream = waiting.times.stream if waiting is not None else Clock()

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        stream.now = max(stream.now, timestamp)
        if key is None or value is None:
            if outer and value is not None:
                forward(key, join(value, None, key), timestamp, headers)
            else:
                task.drop(name, "null key or value")
            return
        if waiting is not None and timestamp == stream.now:
            waiting.emit(timestamp, headers)
        last = max(0, timestamp + after)
        unmatched = True
        for other_time, stored in fetch(serialize_key(key), timestamp - before, last):
            unmatched, other = False, deserialize(stored)
            if waiting is not None:
                waiting.found_partner(key, other_time, timestamp, headers)
            forward(key, join(value, other, key), max(timestamp, other_time), headers)
        if unmatched and outer:
            if waiting is None or last < stream.now:
                forward(key, join(value, None, key), timestamp, headers)
            else:
                waiting.add(key, value, timestamp, headers)

    return process


def _value_joiner(behavior: StreamStreamJoin, context: OperatorContext) -> Join:
    """Return the function (own value, other value, key) → joined value."""
    joined = context.expression(behavior.value, "left", "right", "key")
    if behavior.is_left:
        return joined
    return lambda own, other, key: joined(other, own, key)


@attrs.frozen
class _Waiting:
    """The records without a partner, as one side of the join uses them."""

    store: ListBytes
    times: _Times
    is_left: bool
    forward: Process
    join_values: Join
    current: CurrentRecord
    wall_clock: Callable[[], int]
    interval_ms: int
    own_after_ms: int
    """The time from a record of this side to the end of its window."""
    left_after_ms: int
    right_after_ms: int
    grace_ms: int
    before_fix_ms: int | None
    """Without the fix for KAFKA-15417: the other end of the window, for the lower bound."""

    @classmethod
    def from_behavior(cls, behavior: StreamStreamJoin, after: int, context: OperatorContext) -> "_Waiting":
        name, window, is_fixed = behavior.shared or "", behavior.window, behavior.closes_by_own_side
        return cls(
            store=context.store(name, ListBytes),
            times=_Times.from_context(name, context),
            is_left=behavior.is_left,
            forward=context.forward,
            join_values=context.expression(behavior.value, "left", "right", "key"),
            current=context.task.current,
            wall_clock=context.task.wall_clock,
            interval_ms=context.settings.outer_join_interval_ms,
            own_after_ms=after,
            left_after_ms=window.after_ms if is_fixed else after,
            right_after_ms=window.before_ms if is_fixed else after,
            grace_ms=window.grace_ms,
            before_fix_ms=None if is_fixed else window.before_ms + window.after_ms - after,
        )

    def add(self, key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        self.times.earliest.now = min(self.times.earliest.now, timestamp)
        self.current.context = (timestamp, headers, self.current.record)
        self.store.add(timestamp, self.is_left, key, value)
        self.current.context = None

    def found_partner(self, key: Value, other_time: int, timestamp: int, headers: Headers) -> None:
        """Remove the other record from the waiting ones: it has a partner now."""
        if self.store.holds(other_time, not self.is_left, key):
            self.current.context = (timestamp, headers, self.current.record)
            self.store.clear(other_time, not self.is_left, key)
            self.current.context = None

    def emit(self, timestamp: int, headers: Headers) -> None:
        """Join records whose window is closed with null (`emitNonJoinedOuterRecords`)."""
        times = self.times
        if self._waits():
            return
        now = self.wall_clock()
        if now < times.next_emission.now:
            return
        times.next_emission.now = now + self.interval_ms
        times.earliest.now = NEVER
        emitted = dict.fromkeys(self._forward_closed(headers))
        self.current.context = (timestamp, headers, self.current.record)
        for entry_key in emitted:
            self.store.delete(entry_key)
        self.current.context = None

    def _waits(self) -> bool:
        """Return whether no window can be closed, by the lower bound for the times of waiting records."""
        times = self.times
        if self.before_fix_ms is not None:
            return times.earliest.now >= times.stream.now - self.before_fix_ms - self.grace_ms
        closes = times.earliest.now + self.own_after_ms + self.grace_ms
        # without waiting records the sum overflows in Java, and the throttle is reset
        return times.stream.now <= closes <= NEVER

    def _forward_closed(self, headers: Headers) -> list[bytes]:
        """Forward them in order of time, until a record with an open window is found on both sides.

        Return their entry keys. Keys that are equal in Python may have different bytes.
        """
        times, open_sides, emitted = self.times, set[bool](), list[bytes]()
        for entry_key, time, is_left, key, value in self.store.all():
            times.earliest.now = time
            if len(open_sides) == 2:  # noqa: PLR2004 - left and right
                break
            after = self.left_after_ms if is_left else self.right_after_ms
            if time + after + self.grace_ms >= times.stream.now:
                if self.before_fix_ms is not None:
                    break
                open_sides.add(is_left)
                continue
            joined = self.join_values(value, None, key) if is_left else self.join_values(None, value, key)
            self.forward(key, joined, time, headers)
            emitted.append(entry_key)
        return emitted


def stream_self_join(behavior: StreamSelfJoin, context: OperatorContext) -> Process:
    """Join a record as the left side with earlier records, then as the right side, and once with itself.

    The order is the order of an inner join of two streams with the same records.
    """
    window = behavior.window
    before, after = window.before_ms, window.after_ms
    retention = before + after + window.grace_ms
    joined = context.expression(behavior.value, "left", "right", "key")
    fetch = context.store(behavior.store, WindowBytes).fetch_range
    forward, task, name, observed = context.forward, context.task, context.node.name, context.clock()

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            task.drop(name, "null key or value")
            return
        observed.now = max(observed.now, timestamp)
        for time, other in list(fetch(key, max(0, timestamp - before), max(0, timestamp + after))):
            forward(key, joined(value, other, key), max(timestamp, time), headers)
        joins_itself = timestamp > observed.now - retention + 1
        for time, other in list(fetch(key, max(0, timestamp - after), max(0, timestamp + before))):
            if joins_itself and time > timestamp:
                joins_itself = False
                forward(key, joined(value, value, key), timestamp, headers)
            forward(key, joined(other, value, key), max(timestamp, time), headers)
        if joins_itself:
            forward(key, joined(value, value, key), timestamp, headers)

    return process


FACTORIES: Mapping[type, OperatorFactory] = {
    JoinWindowed: join_windowed,
    StreamStreamJoin: stream_stream_join,
    StreamSelfJoin: stream_self_join,
}
