"""`count`, `reduce` and `aggregate` of grouped streams, windowed streams and grouped tables."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized, windowed_retention_ms
from headwater.compiler.dsl.declarations import ProcessorDeclaration, RepartitionDeclaration
from headwater.compiler.dsl.formats import with_long_value, with_store_serdes, with_windowed_key
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import GroupedStream, GroupedTable, Handle, Table, View, WindowedStream
from headwater.compiler.dsl.naming import REPARTITION_SUFFIX
from headwater.compiler.dsl.old_values import OldValues
from headwater.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    Store,
    close_grace_ms,
    is_versioned,
    key_value_store,
    windowed_store,
)
from headwater.model import operators as op
from headwater.model.behaviors import Aggregation as Functions
from headwater.model.behaviors import AggregationKind, RecordFormat, StreamAggregate, TableAggregate
from headwater.model.windows import SlidingWindow

AnyAggregation = op.Count | op.Reduce | op.Aggregate

REDUCE = "KSTREAM-REDUCE-"
AGGREGATE = "KSTREAM-AGGREGATE-"


def count(builder: Builder, on: GroupedStream, call: op.Count) -> Handle:
    _skip_index_of_unnamed_count(builder, call)
    return _plain(builder, on, call, AGGREGATE)


def reduce(builder: Builder, on: GroupedStream, call: op.Reduce) -> Handle:
    return _plain(builder, on, call, REDUCE)


def aggregate(builder: Builder, on: GroupedStream, call: op.Aggregate) -> Handle:
    return _plain(builder, on, call, AGGREGATE)


def windowed_count(builder: Builder, on: WindowedStream, call: op.Count) -> Handle:
    if not isinstance(on.window, SlidingWindow):
        _skip_index_of_unnamed_count(builder, call)
    return _windowed(builder, on, call, AGGREGATE)


def windowed_reduce(builder: Builder, on: WindowedStream, call: op.Reduce) -> Handle:
    return _windowed(builder, on, call, REDUCE)


def windowed_aggregate(builder: Builder, on: WindowedStream, call: op.Aggregate) -> Handle:
    return _windowed(builder, on, call, AGGREGATE)


def _skip_index_of_unnamed_count(builder: Builder, call: op.Count) -> None:
    """Skip an index: `count(Materialized)` without a name takes a store index twice (facts 1.4)."""
    if call.materialized is not None and call.materialized.store_name is None:
        builder.names.skip_index()


def _plain(builder: Builder, on: GroupedStream, call: AnyAggregation, prefix: str) -> Table:
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = aggregated(on.record, call)
    store = key_value_store(builder.store_name(call.materialized, prefix), call.materialized, record)
    name = builder.named(call.name, prefix)
    parent, sources = _parent(builder, on, call, store)
    old_values = OldValues()
    behavior = StreamAggregate(store.name, functions_of(call))
    declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
    node = builder.add(name, declares, parent, versioned=is_versioned(call.materialized))
    return Table(name, sources, node, View.of(store.name), old_values, record)


def _windowed(builder: Builder, on: WindowedStream, call: AnyAggregation, prefix: str) -> Table:
    store_name = builder.store_name(call.materialized, prefix)
    name = builder.named(call.name, prefix)
    retention = windowed_retention_ms(builder, call.materialized, on.window, store_name)
    record = aggregated(on.grouped.record, call)
    store = windowed_store(
        store_name, call.materialized, on.window, retention, record, emit_on_close=on.emit_on_close
    )
    parent, sources = _parent(builder, on.grouped, call, store)
    grace = close_grace_ms(on.window)
    old_values = OldValues()
    behavior = StreamAggregate(store.name, functions_of(call), on.window, emit_on_close=on.emit_on_close)
    declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
    node = builder.add(name, declares, parent, versioned=False, grace_ms=grace)
    return Table(name, sources, node, View.of(store.name), old_values, with_windowed_key(record, on.window))


def aggregated(record: RecordFormat, call: AnyAggregation) -> RecordFormat:
    """Return the formats of the store, which are those of a result without windows; a count is a long."""
    return with_store_serdes(
        with_long_value(record) if isinstance(call, op.Count) else record, call.materialized
    )


def functions_of(call: AnyAggregation) -> Functions:
    """Return the expressions of a call."""
    if isinstance(call, op.Count):
        return Functions(AggregationKind.COUNT)
    if isinstance(call, op.Reduce):
        return Functions(AggregationKind.REDUCE, add=call.add, remove=call.remove)
    return Functions(
        AggregationKind.AGGREGATE, init=call.init, add=call.add, remove=call.remove, merge=call.merge
    )


def _parent(
    builder: Builder, on: GroupedStream, call: AnyAggregation, store: Store
) -> tuple[GraphNode, frozenset[str]]:
    """Return the aggregation's parent and sources; aggregations of a named group share one repartition."""
    if not on.repartition_required:
        return on.node, on.sources
    named = call.materialized is not None and call.materialized.store_name is not None
    if on.group is None:
        made = builder.repartition(store.name, on.record, named_by_user=named)
        return builder.attach(made, on.node), frozenset({made.name})
    made = builder.repartition(on.group, on.record, named_by_user=True)
    shared = builder.group_repartitions.setdefault(on, made)
    builder.note_shared_repartition(made.name, shared)
    return builder.attach(shared, on.node), frozenset({made.name})


TABLE_AGGREGATE = "KTABLE-AGGREGATE-"
TABLE_REDUCE = "KTABLE-REDUCE-"


def table_count(builder: Builder, on: GroupedTable, call: op.Count) -> Handle:
    return _repartitioned(builder, on, call, TABLE_AGGREGATE)


def table_reduce(builder: Builder, on: GroupedTable, call: op.Reduce) -> Handle:
    return _repartitioned(builder, on, call, TABLE_REDUCE)


def table_aggregate(builder: Builder, on: GroupedTable, call: op.Aggregate) -> Handle:
    return _repartitioned(builder, on, call, TABLE_AGGREGATE)


def _repartitioned(
    builder: Builder, on: GroupedTable, call: op.Count | op.Reduce | op.Aggregate, prefix: str
) -> Table:
    """Add the repartition and the aggregation (`KGroupedTableImpl#doAggregate`).

    The store's prefix is that of `aggregate`, also for `reduce`. The topic's suffix is always appended.
    """
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = aggregated(on.record, call)
    store = key_value_store(builder.store_name(call.materialized, TABLE_AGGREGATE), call.materialized, record)
    sink = builder.suffixed(call.name, "-sink", "KSTREAM-SINK-")
    source = builder.suffixed(call.name, "-source", "KSTREAM-SOURCE-")
    name = builder.named(call.name, prefix)
    topic = (on.group if on.group is not None else store.name) + REPARTITION_SUFFIX
    repartition = GraphNode(
        source,
        RepartitionDeclaration(topic, sink, source, record=on.record, carries_changes=True),
        builder.at,
    )
    if on.group is not None:
        repartition = builder.group_repartitions.setdefault(on, repartition)
    builder.attach(repartition, on.node)
    builder.note_shared_repartition(source, repartition)
    old_values = OldValues()
    behavior = TableAggregate(store.name, functions_of(call))
    declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
    node = builder.add(name, declares, repartition, versioned=is_versioned(call.materialized))
    return Table(name, frozenset({source}), node, View.of(store.name), old_values, record)
