"""Aggregations of streams: by key here, with windows in the modules of the window types.

There are two fast paths, with the same results as the general one. The general one takes this many times
their processor time, in batches of 50,000 records with 10 records per key, and with unique keys:

- `count` without a cache, the operator by which throughput is measured: 1.5 and 1.3.
- Any aggregation with a cache that no other node reads (`cached_aggregate`): 2.2 and 1.3 for `count`, 1.9 and
  1.25 for `reduce`. Totals that are JSON objects: 1.8 from columns (`stored_totals`).

A `count` with a cache may receive counts per key (`key_counts`). With 10 records per key, that divides the
time by 2.4 again; `worker.task_input.count_keys` counts only if keys repeat.
"""

from collections.abc import Mapping

from headwater.model.behaviors import StreamAggregate
from headwater.model.windows import SessionWindow, SlidingWindow
from headwater_spark.engine.key_counts import NO_KEY_OR_VALUE
from headwater_spark.engine.operators.aggregation import (
    STORED_COUNT,
    can_cache_values,
    counts_longs,
    functions_of,
)
from headwater_spark.engine.operators.cached_aggregate import cached_aggregate
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.operators.materialized import table_store
from headwater_spark.engine.operators.windowed_aggregates import (
    session_aggregate,
    sliding_aggregate,
    window_aggregate,
)
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.layers import Logged
from headwater_spark.engine.task_context import TaskContext


def counts_fast(behavior: StreamAggregate, task: TaskContext) -> bool:
    """Return whether `count_fast` counts: without windows, in a store with timestamps, longs and no cache."""
    if behavior.window is not None:
        return False
    typed = task.stores.typed_store(behavior.store)
    return (
        type(typed) is TimestampedKeyValueBytes
        and isinstance(typed.below, Logged)
        and not typed.below.without_timestamps
        and counts_longs(behavior, typed.value_serde)
    )


def count_fast(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """`count` with an update per record. A store's value is `timestamp(8) ‖ count(8)`, packed in one call."""
    typed = context.store(behavior.store, TimestampedKeyValueBytes)
    serialize_key = typed.key_serde.serialize
    overlay = typed.below.overlay
    written, read = overlay.written, overlay.get
    pack, unpack = STORED_COUNT.pack, STORED_COUNT.unpack
    name, drop, forward, sends_old = (
        context.node.name,
        context.task.drop,
        context.forward,
        behavior.sends_old,
    )
    changelog = context.task.program.changelog(behavior.store)
    partition, append = context.task.partition, context.task.append

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        key_bytes = serialize_key(key)
        stored = written.get(key_bytes) or read(key_bytes)
        if stored is None:
            old = 0
        else:
            known, old = unpack(stored)
            timestamp = max(timestamp, known)
        new = old + 1
        written[key_bytes] = stored = pack(timestamp, new)
        if changelog is not None:
            append((changelog, partition, key_bytes, stored[8:], timestamp, ()))
        forward(key, (new, old if sends_old else None, True), timestamp, headers)

    return process


def stream_aggregate(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """`KStreamAggregate`, `KStreamReduce` and their windowed variants."""
    match behavior.window:
        case None:
            return _aggregate_by_key(behavior, context)
        case SessionWindow() as window:
            return session_aggregate(behavior, window, context)
        case SlidingWindow() as window:
            return sliding_aggregate(behavior, window, context)
        case window:
            return window_aggregate(behavior, window, context)


def _aggregate_by_key(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """Drop null keys and values; the timestamp of a result is the largest of its records."""
    if counts_fast(behavior, context.task):
        return count_fast(behavior, context)
    general = _update_per_record(behavior, context)
    can_cache = can_cache_values(behavior, context, TimestampedKeyValueBytes)
    return cached_aggregate(behavior, context, general) if can_cache else general


def _update_per_record(behavior: StreamAggregate, context: OperatorContext) -> Process:
    functions = functions_of(behavior.aggregation, context)
    store = table_store(behavior.store, context, sends_old=behavior.sends_old)
    get, update, init, add = store.get, store.update, functions.init, functions.add
    name, drop = context.node.name, context.task.drop

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        known = get(key)
        if known is None:
            # The initial value is the old value of the first change, as in Kafka Streams.
            old, time = init(), timestamp
        else:
            old, time = known
            time = max(time, timestamp)
        total = add(key, value, old)
        update(key, total, old, time, (timestamp, headers))

    return process


FACTORIES: Mapping[type, OperatorFactory] = {StreamAggregate: stream_aggregate}
