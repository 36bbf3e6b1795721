"""Aggregations by key with a record cache: a batch's totals are kept as values, each is written once.

The general way keeps them as bytes in the store's cache. This one is taken where nobody else reads the store;
what is forwarded and logged is the same, in the order of the keys' latest updates.
"""

from collections.abc import Callable
from typing import Final

from infra.model.behaviors import AggregationKind, StreamAggregate
from infra.model.nodes import ProcessorNode
from spark_jobs.runtime.engine.key_counts import NO_KEY_OR_VALUE
from spark_jobs.runtime.engine.operators.aggregation import functions_of
from spark_jobs.runtime.engine.operators.interface import OperatorContext, Process
from spark_jobs.runtime.engine.records import Headers, InputRecord, Value
from spark_jobs.runtime.engine.stores.key_value import TimestampedKeyValueBytes
from spark_jobs.runtime.engine.stores.layers import TIMESTAMP, Cached, read_timestamp, with_timestamp

_TIMESTAMP: Final = 3
_HEADERS: Final = 6
Pending = tuple[Value, Value, int, int, Headers, InputRecord]
"""(key, total, its timestamp, the latest record's timestamp, headers, input record)"""


def caches_alone(behavior: StreamAggregate, context: OperatorContext) -> bool:
    """Whether the store has a cache and no other node is connected to it."""
    typed = context.task.typed_store(behavior.store)
    users = [
        node
        for node in context.task.program.nodes
        if isinstance(node, ProcessorNode) and behavior.store in node.stores
    ]
    return type(typed) is TimestampedKeyValueBytes and isinstance(typed.below, Cached) and len(users) == 1


def cached_aggregate(behavior: StreamAggregate, context: OperatorContext) -> Process:
    functions = functions_of(behavior.aggregation, context)
    init, add = functions.init, functions.add
    typed = context.store(behavior.store, TimestampedKeyValueBytes)
    serialize_key, deserialize = typed.key_serde.serialize, typed.value_serde.deserialize
    name, drop, current = context.node.name, context.task.drop, context.task.current
    pending: dict[bytes, Pending] = {}
    take = pending.pop
    read = _flushed_into(typed, pending, behavior, context)

    def before(plain: bytes, timestamp: int) -> tuple[Value, int]:
        """Take out the key's total so far and its time, those of a key that has none if need be."""
        known = take(plain, None)
        if known is not None and known[1] is not None:
            return known[1], max(known[2], timestamp)
        stored = read(plain) if known is None else None
        if stored is None:
            return init(), timestamp
        return deserialize(stored[TIMESTAMP:]), max(read_timestamp(stored), timestamp)

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None or value is None:
            drop(name, NO_KEY_OR_VALUE)
            return
        plain = serialize_key(key)
        total, time = before(plain, timestamp)
        pending[plain] = (key, add(key, value, total), time, timestamp, headers, current.record)

    def add_count(key: Value, number: int, latest: int, last: InputRecord) -> None:
        plain = serialize_key(key)
        total, time = before(plain, latest)
        pending[plain] = (key, total + number, time, last[_TIMESTAMP], last[_HEADERS], last)

    if behavior.aggregation.kind is AggregationKind.COUNT:
        context.task.on_key_counts(name, add_count)
    return process


def _flushed_into(
    typed: TimestampedKeyValueBytes,
    pending: dict[bytes, Pending],
    behavior: StreamAggregate,
    context: OperatorContext,
) -> Callable[[bytes], bytes | None]:
    """Has the pending totals written and forwarded in the cache's turn; gives the look-up below the cache."""
    cache = typed.below
    if not isinstance(cache, Cached):
        raise TypeError(f"{behavior.store} has no cache")
    read, put = cache.below.overlay.get, cache.below.put
    serialize, deserialize = typed.value_serde.serialize, typed.value_serde.deserialize
    forward, current, sends_old = context.forward, context.task.current, behavior.sends_old

    def flush() -> None:
        totals = list(pending.items())
        pending.clear()
        for plain, (key, total, time, timestamp, headers, record) in totals:
            stored = read(plain) if sends_old or total is None else None
            if total is None and stored is None:
                continue
            written = None if total is None else with_timestamp(serialize(total), time)
            put(plain, written, (timestamp, headers, record))
            current.record = record
            old = deserialize(stored[TIMESTAMP:]) if stored is not None and sends_old else None
            forward(key, (total, old, True), timestamp if total is None else time, headers)

    cache.flush_with(flush)
    return read
