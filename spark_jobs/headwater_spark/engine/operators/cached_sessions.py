"""Aggregations of sessions with a cache of their own, over the entries of a batch (`batch_entries`)."""

from bisect import bisect_left

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow
from headwater_spark.engine.key_counts import CLOSED, NO_KEY
from headwater_spark.engine.operators.aggregation import functions_of
from headwater_spark.engine.operators.batch_entries import BatchEntries, Entry
from headwater_spark.engine.operators.interface import OperatorContext, Process
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.windows import SessionBytes


def cached_sessions(
    behavior: StreamAggregate, window: SessionWindow, context: OperatorContext, general: Process
) -> Process:
    """Return the function of an aggregation; `general` is called if other stores share the cache."""
    gap, grace = window.gap_ms, window.grace_ms
    functions = functions_of(behavior.aggregation, context)
    init, add, merge = functions.init, functions.add, functions.merge
    store = context.store(behavior.store, SessionBytes)
    if not isinstance(store.below, Cached):
        raise TypeError(f"{behavior.store} has no cache")
    stores, entries_of_batch = store.below.cache.stores, BatchEntries(store, store.below)
    of_key, update = entries_of_batch.of_key, entries_of_batch.update
    cached_keys, touch_range = entries_of_batch.cached_keys, entries_of_batch.touch_range
    serialize_key, serialize = store.key_serde.serialize, store.value_serde.serialize
    deserialize, current = store.value_serde.deserialize, context.task.current
    stored_until, visible_ms = store.observed, store.visible_ms
    observed, name, drop = context.clock(), context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if len(stores) != 1:
            general(key, value, timestamp, headers)
            return
        if key is None:
            drop(name, NO_KEY)
            return
        observed.now = max(observed.now, timestamp)
        key_bytes = serialize_key(key)
        entries = of_key(key_bytes)
        start = end = timestamp
        total, connected = init(), list[Entry]()
        oldest, latest_start = stored_until.now - visible_ms, timestamp + gap
        for session in entries.each[bisect_left(entries.times, timestamp - gap) :]:
            if session.start <= latest_start and (
                session.time >= oldest or session.entry_key in cached_keys()
            ):
                connected.append(session)
                total = merge(key, total, deserialize(session.value))
                start, end = min(start, session.start), max(end, session.time)
        touch_range(entries, timestamp - gap)
        if end < observed.now - grace - gap:
            drop(name, CLOSED)
            return
        at = (timestamp, headers, current.record)
        if start != timestamp or end != timestamp:
            for session in connected:
                update(entries, key_bytes, session.time, session.start, None, at)
        total = add(key, value, total)
        update(entries, key_bytes, end, start, None if total is None else serialize(total), at)

    return process
