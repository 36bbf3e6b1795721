"""Operators of tables: they receive and forward changes (new, old, is latest)."""

from collections.abc import Callable, Mapping

from headwater.model.behaviors import (
    AggregationKind,
    GlobalTableSource,
    TableAggregate,
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableSource,
    TableSuppress,
    TableTransformValues,
)
from headwater_spark.engine.operators.aggregation import functions_of
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.operators.materialized import TableStore, table_store
from headwater_spark.engine.operators.processors import run_global, value_transformer
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.stores.buffers import SuppressBytes

Compute = Callable[[Value, Value, int, Headers], Value]
"""(key, value, timestamp, headers) → value of the derived table; None = no row"""
Derived = TableFilter | TableMapValues | TableTransformValues


def table_source(behavior: TableSource, context: OperatorContext) -> Process:
    """`KTableSource`: turn records into changes; drop null keys."""
    forward, task, name = context.forward, context.task, context.node.name
    if behavior.store is None:

        def forward_change(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
            if key is None:
                task.drop(name, "null key")
            else:
                forward(key, (value, None, True), timestamp, headers)

        return forward_change

    store = table_store(behavior.store, context, sends_old=behavior.sends_old)
    get, read, update = store.get, store.read, store.update
    sends_old = behavior.sends_old

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            task.drop(name, "null key")
            return
        old = None
        if sends_old:
            known = get(key)
            old = None if known is None else known[0]
        else:
            read(key)
        update(key, value, old, timestamp, (timestamp, headers))

    return process


def global_table_source(behavior: GlobalTableSource, context: OperatorContext) -> Process:
    """Write the store of a global table; for `addGlobalStore` a user's class writes it."""
    if behavior.processor_class is not None:
        return run_global(behavior.processor_class, context)
    return table_source(TableSource(behavior.store), context)


def table_filter(behavior: TableFilter, context: OperatorContext) -> Process:
    """`KTableFilter`: forward a deletion for a row that no longer matches, unless it did not match before."""
    where = context.expression(behavior.where, "key", "value")
    wanted = not behavior.negate

    def compute(key: Value, value: Value, timestamp: int, headers: Headers) -> Value:
        del timestamp, headers
        return value if value is not None and where(key, value) is wanted else None

    derive = _forward_derived(compute, behavior, context)
    if not behavior.sends_old or behavior.versioned:
        return derive
    known = context.task.stores.typed_store(behavior.store).get if behavior.store is not None else None

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        new, old, _ = change
        if (
            compute(key, new, timestamp, headers) is not None
            or (compute(key, old, timestamp, headers) if known is None else known(key)) is not None
        ):
            derive(key, change, timestamp, headers)

    return process


def table_map_values(behavior: TableMapValues, context: OperatorContext) -> Process:
    new_value = context.expression(behavior.value, "key", "value")

    def compute(key: Value, value: Value, timestamp: int, headers: Headers) -> Value:
        del timestamp, headers
        return None if value is None else new_value(key, value)

    return _forward_derived(compute, behavior, context)


def table_transform_values(behavior: TableTransformValues, context: OperatorContext) -> Process:
    """`KTableTransformValues`: the transformer is called for deletions, too."""
    return _forward_derived(value_transformer(behavior.processor_class, context), behavior, context)


def _forward_derived(compute: Compute, behavior: Derived, context: OperatorContext) -> Process:
    """Forward the computed change, through the store of the node if it has one."""
    forward, sends_old = context.forward, behavior.sends_old
    store = _own_store(behavior, context)
    if store is not None:

        def update(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
            new = compute(key, change[0], timestamp, headers)
            known = store.get(key) if sends_old else None
            old = None if known is None else known[0]
            store.update(key, new, old, timestamp, (timestamp, headers))

        return update

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        new = compute(key, change[0], timestamp, headers)
        old = compute(key, change[1], timestamp, headers) if sends_old else None
        forward(key, (new, old, change[2]), timestamp, headers)

    return process


def _own_store(behavior: Derived, context: OperatorContext) -> TableStore | None:
    if behavior.store is None:
        return None
    return table_store(behavior.store, context, sends_old=behavior.sends_old)


def repartition_map(behavior: TableRepartitionMap, context: OperatorContext) -> Process:
    """`KTableRepartitionMap`: forward old, then new; both in one record if the key is the same (KIP-904).

    While the application is upgraded from a release that cannot read such a record, these are two records.
    """
    new_key = context.expression(behavior.key, "key", "value")
    new_value = context.expression(behavior.value or "value", "key", "value")
    forward, versioned, name = context.forward, behavior.versioned, context.node.name
    equal = context.key_serde(behavior.key_format).equal
    sends_both = behavior.sends_both_values

    def pair(key: Value, value: Value) -> tuple[Value, Value] | None:
        if value is None:
            return None
        group_key, mapped = new_key(key, value), new_value(key, value)
        return None if group_key is None or mapped is None else (group_key, mapped)

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            raise ValueError(f"{name}: the key of a table that is grouped must not be null")
        if versioned and not change[2]:
            return
        new, old, latest = pair(key, change[0]), pair(key, change[1]), change[2]
        if sends_both and new is not None and old is not None and equal(old[0], new[0]):
            forward(old[0], (new[1], old[1], latest), timestamp, headers)
            return
        if old is not None:
            forward(old[0], (None, old[1], latest), timestamp, headers)
        if new is not None:
            forward(new[0], (new[1], None, latest), timestamp, headers)

    return process


def table_aggregate(behavior: TableAggregate, context: OperatorContext) -> Process:
    """`KTableAggregate`, `KTableReduce`: remove the old value, then add the new one."""
    functions = functions_of(behavior.aggregation, context)
    store = table_store(behavior.store, context, sends_old=behavior.sends_old)
    init, add, remove = functions.init, functions.add, functions.remove
    keeps_first_time = behavior.aggregation.kind is AggregationKind.REDUCE
    name = context.node.name

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            raise ValueError(f"{name}: the key of a table that is aggregated must not be null")
        new, old, _ = change
        known = store.get(key)
        total = before = None if known is None else known[0]
        time = timestamp
        if old is not None and known is not None:
            total = remove(key, old, total)
            time = max(timestamp, known[1])
        if new is not None:
            if known is not None and not (keeps_first_time and total is None):
                time = max(timestamp, known[1])
            total = add(key, new, init() if total is None else total)
        store.update(key, total, before, time, (timestamp, headers))

    return process


class BufferFullError(Exception):
    """The buffer is full and must not emit early (`shutDownWhenFull`): the application stops."""


def suppress(behavior: TableSuppress, context: OperatorContext) -> Process:
    """Emit the oldest changes that are due; if the buffer exceeds its limit, emit early or stop.

    With `untilWindowCloses`, the time of a change is its window's end, and deletions are not emitted.
    """
    buffer = context.store(behavior.store, SuppressBytes)
    observed = context.clock()
    current = context.task.current
    wait, until_close = behavior.wait_ms, behavior.until_window_closes
    put, is_due, over = buffer.put, buffer.is_due, _buffer_limit(behavior, buffer)
    emit = _emitter(buffer, until_close, context)
    name = context.node.name

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        observed.now = max(observed.now, timestamp)
        topic, partition, offset = current.record[:3]
        time = key.end if until_close else timestamp
        put(time, key, change[:2], (timestamp, offset, topic, partition, headers))
        expired = observed.now - wait
        while is_due(expired):
            emit()
        while over is not None and over():
            if behavior.shut_down_when_full:
                raise BufferFullError(
                    f"{name} buffers {buffer.records} records, {buffer.size} bytes; "
                    f"allowed: {behavior.max_records or 'any'} records, {behavior.max_bytes or 'any'} bytes"
                )
            emit()

    return process


def _buffer_limit(behavior: TableSuppress, buffer: SuppressBytes) -> Callable[[], bool] | None:
    records, size = behavior.max_records, behavior.max_bytes
    if records is None and size is None:
        return None
    return lambda: (
        (records is not None and buffer.records > records) or (size is not None and buffer.size > size)
    )


def _emitter(buffer: SuppressBytes, drops_deletions: bool, context: OperatorContext) -> Callable[[], None]:  # noqa: FBT001
    current, forward = context.task.current, context.forward

    def emit() -> None:
        key, (new, old), (timestamp, offset, topic, partition, headers) = buffer.oldest()
        if new is not None or not drops_deletions:
            before = current.record
            current.record = (topic, partition, offset, timestamp, None, None, headers)
            forward(key, (new, old, True), timestamp, headers)
            current.record = before
        # after forwarding: until then, readers of the table get the prior value
        buffer.drop_oldest()

    return emit


FACTORIES: Mapping[type, OperatorFactory] = {
    TableSource: table_source,
    GlobalTableSource: global_table_source,
    TableFilter: table_filter,
    TableMapValues: table_map_values,
    TableTransformValues: table_transform_values,
    TableRepartitionMap: repartition_map,
    TableAggregate: table_aggregate,
    TableSuppress: suppress,
}
