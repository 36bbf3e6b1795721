"""`count` by key with an update a record: the same as the general aggregation, without its detours.

It is the operator that throughput is measured by. A store's value is timestamp(8) ‖ count(8), written and
read in one go; the changelog's value is its second half.
"""

from struct import Struct

from infra.model.behaviors import StreamAggregate
from spark_jobs.runtime.engine.operators.interface import OperatorContext, Process
from spark_jobs.runtime.engine.records import Headers, Value
from spark_jobs.runtime.engine.stores.key_value import TimestampedKeyValueBytes
from spark_jobs.runtime.engine.stores.layers import Logged

_STORED = Struct(">qq")


def counts_fast(behavior: StreamAggregate, context: OperatorContext) -> bool:
    """Whether the store is timestamped, on disk too, holds longs and has no cache."""
    typed = context.task.typed_store(behavior.store)
    return (
        type(typed) is TimestampedKeyValueBytes
        and isinstance(typed.below, Logged)
        and not typed.below.without_timestamps
        and typed.value_serde.serialize(1) == (1).to_bytes(8, "big")
    )


def count_fast(behavior: StreamAggregate, context: OperatorContext) -> Process:
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
            drop(name, "null key or value")
            return
        plain = serialize_key(key)
        stored = written.get(plain) or read(plain)
        if stored is None:
            old = 0
        else:
            known, old = unpack(stored)
            timestamp = max(timestamp, known)
        new = old + 1
        written[plain] = stored = pack(timestamp, new)
        if changelog is not None:
            append((changelog, partition, plain, stored[8:], timestamp, ()))
        forward(key, (new, old if sends_old else None, True), timestamp, headers)

    return process
