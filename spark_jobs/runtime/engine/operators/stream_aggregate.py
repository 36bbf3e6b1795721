"""Aggregations of streams: by key here, with windows in the modules of the window types.

There are two fast paths, with the same results as the general one: `count` without a cache, the operator by
which throughput is measured, and any aggregation with a cache that no other node reads.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import Final

from infra.model.behaviors import AggregationKind, StreamAggregate
from infra.model.nodes import ProcessorNode
from infra.model.windows import SessionWindow, SlidingWindow
from spark_jobs.runtime.engine.key_counts import NO_KEY_OR_VALUE
from spark_jobs.runtime.engine.operators.aggregation import functions_of
from spark_jobs.runtime.engine.operators.interface import OperatorContext, OperatorFactory, Process
from spark_jobs.runtime.engine.operators.materialized import table_store
from spark_jobs.runtime.engine.operators.session_aggregate import session_aggregate
from spark_jobs.runtime.engine.operators.sliding_aggregate import sliding_aggregate
from spark_jobs.runtime.engine.operators.window_aggregate import window_aggregate
from spark_jobs.runtime.engine.records import Headers, InputRecord, Value
from spark_jobs.runtime.engine.stores.key_value import TimestampedKeyValueBytes
from spark_jobs.runtime.engine.stores.layers import TIMESTAMP, Cached, Logged, read_timestamp, with_timestamp

_STORED = Struct(">qq")


def can_count_fast(behavior: StreamAggregate, context: OperatorContext) -> bool:
    """Return whether the store is timestamped, stores its timestamps, has longs and no cache."""
    typed = context.task.typed_store(behavior.store)
    return (
        type(typed) is TimestampedKeyValueBytes
        and isinstance(typed.below, Logged)
        and not typed.below.without_timestamps
        and typed.value_serde.serialize(1) == (1).to_bytes(8, "big")
    )


def count_fast(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """`count` with an update per record. A store's value is `timestamp(8) ‖ count(8)`, packed in one call."""
    typed = context.store(behavior.store, TimestampedKeyValueBytes)
    serialize_key = typed.key_serde.serialize
    overlay = typed.below.overlay
    written, read = overlay.written, overlay.get
    pack, unpack = _STORED.pack, _STORED.unpack
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


_TIMESTAMP: Final = 3
_HEADERS: Final = 6
Pending = tuple[Value, Value, int, int, Headers, InputRecord]
"""(key, total, timestamp of the total, timestamp of the latest record, headers, input record)"""


def can_cache_values(behavior: StreamAggregate, context: OperatorContext) -> bool:
    """Return whether the store has a cache, no other node uses it, and the first failure ends the batch.

    If failures are skipped, each total is serialized at once: the previous one is kept if that fails.
    """
    if context.task.program.settings.on_processing_error != "fail":
        return False
    typed = context.task.typed_store(behavior.store)
    users = [
        node
        for node in context.task.program.nodes
        if isinstance(node, ProcessorNode) and behavior.store in node.stores
    ]
    return type(typed) is TimestampedKeyValueBytes and isinstance(typed.below, Cached) and len(users) == 1


def cached_aggregate(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """Keep the totals of a batch as values and serialize each once, when the store's cache is flushed.

    They are forwarded and logged in the order of the keys' latest updates, as from the store's cache.
    """
    functions = functions_of(behavior.aggregation, context)
    init, add = functions.init, functions.add
    typed = context.store(behavior.store, TimestampedKeyValueBytes)
    serialize_key, deserialize = typed.key_serde.serialize, typed.value_serde.deserialize
    name, drop, current = context.node.name, context.task.drop, context.task.current
    pending: dict[bytes, Pending] = {}
    take = pending.pop
    read = _flush_with_cache(typed, pending, behavior, context)

    def before(key_bytes: bytes, timestamp: int) -> tuple[Value, int]:
        """Remove and return the total of the key and its timestamp; the initial total for a new key."""
        known = take(key_bytes, None)
        if known is not None and known[1] is not None:
            return known[1], max(known[2], timestamp)
        stored = read(key_bytes) if known is None else None
        if stored is None:
            return init(), timestamp
        return deserialize(stored[TIMESTAMP:]), max(read_timestamp(stored), timestamp)

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        key_bytes = serialize_key(key)
        total, time = before(key_bytes, timestamp)
        pending[key_bytes] = (key, add(key, value, total), time, timestamp, headers, current.record)

    def add_count(key: Value, number: int, latest: int, last: InputRecord) -> None:
        key_bytes = serialize_key(key)
        total, time = before(key_bytes, latest)
        pending[key_bytes] = (key, total + number, time, last[_TIMESTAMP], last[_HEADERS], last)

    if behavior.aggregation.kind is AggregationKind.COUNT:
        context.task.on_key_counts(name, add_count)
    return process


def _flush_with_cache(
    typed: TimestampedKeyValueBytes,
    pending: dict[bytes, Pending],
    behavior: StreamAggregate,
    context: OperatorContext,
) -> Callable[[bytes], bytes | None]:
    """Flush the pending totals with the cache; return the function that reads below the cache."""
    cache = typed.below
    if not isinstance(cache, Cached):
        raise TypeError(f"{behavior.store} has no cache")
    read, put = cache.below.overlay.get, cache.below.put
    serialize, deserialize = typed.value_serde.serialize, typed.value_serde.deserialize
    forward, current, sends_old = context.forward, context.task.current, behavior.sends_old

    def flush() -> None:
        totals = list(pending.items())
        pending.clear()
        for key_bytes, (key, total, time, timestamp, headers, record) in totals:
            stored = read(key_bytes) if sends_old or total is None else None
            if total is None and stored is None:
                continue
            current.record = record
            written = None if total is None else with_timestamp(serialize(total), time)
            put(key_bytes, written, (timestamp, headers, record))
            old = deserialize(stored[TIMESTAMP:]) if stored is not None and sends_old else None
            forward(key, (total, old, True), timestamp if total is None else time, headers)

    cache.flush_with(flush)
    return read


def stream_aggregate(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """`KStreamAggregate`, `KStreamReduce` and their windowed variants."""
    match behavior.window:
        case None:
            return _keyed(behavior, context)
        case SessionWindow() as window:
            return session_aggregate(behavior, window, context)
        case SlidingWindow() as window:
            return sliding_aggregate(behavior, window, context)
        case window:
            return window_aggregate(behavior, window, context)


def _keyed(behavior: StreamAggregate, context: OperatorContext) -> Process:
    """Drop null keys and values; the timestamp of a result is the largest of its records."""
    if behavior.aggregation.kind is AggregationKind.COUNT and can_count_fast(behavior, context):
        return count_fast(behavior, context)
    if can_cache_values(behavior, context):
        return cached_aggregate(behavior, context)
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
            old, time = (
                init(),
                timestamp,
            )  # the initial value is the first change's old one, as in Kafka Streams
        else:
            old, time = known
            time = max(time, timestamp)
        total = add(key, value, old)
        update(key, total, old, time, (timestamp, headers))

    return process


FACTORIES: Mapping[type, OperatorFactory] = {StreamAggregate: stream_aggregate}
