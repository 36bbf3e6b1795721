"""Joins of tables on one key (`KTableKTable…Join`, `KTableKTableJoinMerger`)."""

from collections.abc import Callable, Mapping

from headwater.model.behaviors import TableJoinMerge, TableTableJoin
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.operators.materialized import table_store
from headwater_spark.engine.operators.views import value_getter
from headwater_spark.engine.records import Headers, Value


def table_table_join(behavior: TableTableJoin, context: OperatorContext) -> Process:
    """Build one side of the join: join a change of its table with the other table's current value."""
    other_of = value_getter(behavior.other, context)
    needs_other = _needs_other(behavior)
    forward, task, name = context.forward, context.task, context.node.name
    sends_old, versioned = behavior.sends_old, behavior.versioned
    joined = _joined(behavior, context)

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


def _joined(behavior: TableTableJoin, context: OperatorContext) -> Callable[[Value, Value, Value], Value]:
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
    TableTableJoin: table_table_join,
    TableJoinMerge: table_join_merge,
}
