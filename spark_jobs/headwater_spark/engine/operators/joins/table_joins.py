"""Joins with a table: of streams with tables and global tables, and of tables with each other."""

from collections.abc import Callable, Mapping

from headwater.model.behaviors import (
    StreamGlobalJoin,
    StreamTableJoin,
    TableJoinMerge,
    TableTableJoin,
)
from headwater.model.formats import StoreView
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.operators.materialized import table_store
from headwater_spark.engine.operators.views import as_of_getter, value_getter
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.stores.buffers import JoinBufferBytes

GetValue = Callable[[Value, int], Value]
"""(key of the table, timestamp of the record) → value of the table"""


def stream_table_join(behavior: StreamTableJoin, context: OperatorContext) -> Process:
    """A versioned table is read as of the record's timestamp; a grace period buffers the record first."""
    join = _join_stream(behavior, _table_getter(behavior, context), context)
    if behavior.buffer is None:
        return join
    return _buffer_stream(behavior, join, context)


def _table_getter(behavior: StreamTableJoin, context: OperatorContext) -> GetValue:
    as_of = as_of_getter(behavior.table, context)
    if as_of is not None:
        return lambda key, time: _value_of(as_of(key, time))
    get = value_getter(behavior.table, context)
    return lambda key, _time: _value_of(get(key))


def _value_of(found: tuple[Value, int] | None) -> Value:
    return None if found is None else found[0]


def stream_global_join(behavior: StreamGlobalJoin, context: OperatorContext) -> Process:
    """The key of the table is computed from the record."""
    get = value_getter(StoreView(behavior.store), context)
    key_of = context.expression(behavior.key, "key", "value")
    return _join_stream(behavior, lambda key, _time: _value_of(get(key)), context, key_of)


def _join_stream(
    behavior: StreamTableJoin | StreamGlobalJoin,
    get_value: GetValue,
    context: OperatorContext,
    key_of: Callable[[Value, Value], Value] | None = None,
) -> Process:
    """Drop null values, and null keys except in a left join.

    The key is the table's. Before KAFKA-19208 was fixed, a left join kept it only if the record's was
    null, too.
    """
    keeps_null_table_keys = isinstance(behavior, StreamTableJoin) or behavior.forwards_null_table_keys
    is_left = behavior.kind == "left"
    joined = context.expression(behavior.value, "left", "right", "key")
    forward, task, name = context.forward, context.task, context.node.name

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if value is None:
            task.drop(name, "null key or value")
            return
        table_key = key if key_of is None else key_of(key, value)
        if table_key is None and not (is_left and (keeps_null_table_keys or key is None)):
            task.drop(name, "null key or value")
            return
        right = None if table_key is None else get_value(table_key, timestamp)
        if right is not None or is_left:
            forward(key, joined(value, right, key), timestamp, headers)

    return process


def _buffer_stream(behavior: StreamTableJoin, join: Process, context: OperatorContext) -> Process:
    name = behavior.buffer or ""
    grace = behavior.grace_ms or 0
    buffer = context.store(name, JoinBufferBytes)
    observed = context.clock(f"{name}/time")
    current = context.task.current

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        topic, partition, offset = current.record[:3]
        if (
            key is None
            or value is None
            or not buffer.put(key, value, (timestamp, offset, topic, partition, headers))
        ):
            join(key, value, timestamp, headers)
        else:
            emit(observed.now - grace)

    def emit(until: int) -> None:
        now = current.record
        for key, value, (timestamp, offset, topic, partition, headers) in buffer.pop_until(until):
            current.record = (topic, partition, offset, timestamp, None, None, headers)
            join(key, value, timestamp, headers)
        current.record = now

    return process


def table_table_join(behavior: TableTableJoin, context: OperatorContext) -> Process:
    """Build one side of the join: join a change of its table with the other table's current value."""
    other_of = value_getter(behavior.other, context)
    needs_other = _needs_other(behavior)
    forward, task, name = context.forward, context.task, context.node.name
    sends_old, versioned = behavior.sends_old, behavior.versioned
    joined = _join_function(behavior, context)

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        new, old, latest = change
        if key is None:
            task.drop(name, "null key")
            return
        if versioned and not latest:
            task.drop(name, "out of order")
            return
        found = other_of(key)
        if found is None:
            if needs_other or (new is None and old is None):
                return
            other = None
        else:
            other = found[0]
            timestamp = max(timestamp, found[1])
        before = joined(old, other, key) if sends_old else None
        forward(key, (joined(new, other, key), before, latest), timestamp, headers)

    return process


def _needs_other(behavior: TableTableJoin) -> bool:
    """Return whether a change without a partner is not forwarded."""
    return behavior.kind == "inner" or (behavior.kind == "left" and not behavior.is_left)


def _join_function(
    behavior: TableTableJoin, context: OperatorContext
) -> Callable[[Value, Value, Value], Value]:
    """Return the function (own value, other value, key) → row; None = the join has no row."""
    expression = context.expression(behavior.value, "left", "right", "key")
    needs_own = behavior.kind == "inner" or (behavior.kind == "left" and behavior.is_left)
    is_left = behavior.is_left

    def joined(own: Value, other: Value, key: Value) -> Value:
        if own is None and (needs_own or other is None):
            return None
        return expression(own, other, key) if is_left else expression(other, own, key)

    return joined


def table_join_merge(behavior: TableJoinMerge, context: OperatorContext) -> Process:
    """Forward the changes of both sides, or put them into the store of the result."""
    forward, sends_old = context.forward, behavior.sends_old
    if behavior.store is not None:
        store = table_store(behavior.store, context, sends_old=sends_old)

        def put(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
            store.update(key, change[0], change[1], timestamp, (timestamp, headers))

        return put
    if sends_old:
        return forward

    def without_old(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        forward(key, (change[0], None, change[2]), timestamp, headers)

    return without_old


FACTORIES: Mapping[type, OperatorFactory] = {
    StreamTableJoin: stream_table_join,
    StreamGlobalJoin: stream_global_join,
    TableTableJoin: table_table_join,
    TableJoinMerge: table_join_merge,
}
