"""Aggregations in session windows (`KStreamSessionWindowAggregate`)."""

from collections.abc import Callable, Iterator

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow
from headwater_spark.engine.operators.aggregation import functions_of
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.operators.materialized import Forwarding
from headwater_spark.engine.operators.window_results import EmissionOnClose
from headwater_spark.engine.records import Headers, Value, Windowed
from headwater_spark.engine.stores.segments import SEGMENT
from headwater_spark.engine.stores.sessions import SessionBytes

_END_AT = -16
_START_AT = -8


def session_aggregate(behavior: StreamAggregate, window: SessionWindow, context: OperatorContext) -> Process:
    """Drop null keys. Merge the sessions that a record connects into one, oldest first, and delete them."""
    gap, grace = window.gap_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    init, add, merge = functions.init, functions.add, functions.merge
    store = context.store(behavior.store, SessionBytes)
    change = _changes(behavior, store, context)
    observed = context.clock()
    emission = _emission(behavior, store, context) if behavior.emit_on_close else None
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            drop(name, "null key")
            return
        if emission is not None:
            emission.advance(timestamp)
        observed.now = max(observed.now, timestamp)
        close_time = observed.now - grace - gap
        connected = list(store.find_sessions(key, timestamp - gap, timestamp + gap))
        start = end = timestamp
        total = init()
        for session, part in connected:
            total = merge(key, total, part)
            start, end = min(start, session.start), max(end, session.end)
        if end < close_time:
            drop(name, "window is closed")
        else:
            at = (timestamp, headers)
            if (start, end) != (timestamp, timestamp):
                for session, part in connected:
                    change(session, None, part, at)
            change(Windowed(key, start, end), add(key, value, total), None, at)
        if emission is not None:
            emission.check(close_time, headers)

    return process


Changes = Callable[[Windowed, Value, Value, tuple[int, Headers]], None]


def _changes(behavior: StreamAggregate, store: SessionBytes, context: OperatorContext) -> Changes:
    """Return a function of (session, new, old, (timestamp, headers)); it forwards without headers."""
    current = context.task.current
    forwarding = Forwarding(
        store.below,
        context,
        lambda entry_key: _session_of(entry_key, store),
        store.value_serde.deserialize,
        sends_old=behavior.sends_old,
        timestamped=False,
    )
    cached, on_close = forwarding.cached, behavior.emit_on_close

    def change(session: Windowed, new: Value, old: Value, at: tuple[int, Headers]) -> None:
        store.put(session, new, (*at, current.record))
        if not on_close and not cached:
            forwarding.forward(session, new, old, session.end, ())

    return change


def _session_of(entry_key: bytes, store: SessionBytes) -> Windowed:
    end = int.from_bytes(entry_key[_END_AT:_START_AT], "big")
    start = int.from_bytes(entry_key[_START_AT:], "big")
    return Windowed(store.key_serde.deserialize(entry_key[SEGMENT:_END_AT]), start, end)


def _emission(behavior: StreamAggregate, store: SessionBytes, context: OperatorContext) -> EmissionOnClose:
    def closed(close_time: int, last: int) -> Iterator[tuple[Windowed, Value, int]] | None:
        first_end, last_end = max(0, last), close_time - 1
        if last_end < first_end:
            return None
        ended = store.sessions_ended(first_end, last_end)
        return ((session, value, session.end) for session, value in ended)

    return EmissionOnClose(context, behavior.store, store.segments.retention, closed)
