"""`count`, `reduce` and `aggregate` of a grouped table: they always repartition."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.aggregations import aggregated, functions_of
from infra.compiler.dsl.calls.materialization import check_materialized
from infra.compiler.dsl.changes import Changes
from infra.compiler.dsl.declarations import WritesProcessor, WritesRepartition
from infra.compiler.dsl.graph import GraphNode
from infra.compiler.dsl.handles import GroupedTable, Handle, Table, View
from infra.compiler.dsl.naming import REPARTITION_SUFFIX
from infra.compiler.dsl.stores import KEY_VALUE_KINDS, is_versioned, key_value_store
from infra.model import operators as op
from infra.model.behaviors import TableAggregate

AGGREGATE = "KTABLE-AGGREGATE-"
REDUCE = "KTABLE-REDUCE-"


def count(builder: Builder, on: GroupedTable, call: op.Count) -> Handle:
    return _aggregate(builder, on, call, AGGREGATE)


def reduce(builder: Builder, on: GroupedTable, call: op.Reduce) -> Handle:
    return _aggregate(builder, on, call, REDUCE)


def aggregate(builder: Builder, on: GroupedTable, call: op.Aggregate) -> Handle:
    return _aggregate(builder, on, call, AGGREGATE)


def _aggregate(
    builder: Builder, on: GroupedTable, call: op.Count | op.Reduce | op.Aggregate, prefix: str
) -> Table:
    """The store's prefix is that of `aggregate`, also for `reduce`; the topic's suffix is appended always."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = aggregated(on.record, call)
    store = key_value_store(builder.store_name(call.materialized, AGGREGATE), call.materialized, record)
    sink = builder.suffixed(call.name, "-sink", "KSTREAM-SINK-")
    source = builder.suffixed(call.name, "-source", "KSTREAM-SOURCE-")
    name = builder.named(call.name, prefix)
    topic = (on.group if on.group is not None else store.name) + REPARTITION_SUFFIX
    repartition = GraphNode(
        source, WritesRepartition(topic, sink, source, record=on.record, carries_changes=True), builder.at
    )
    if on.group is not None:
        repartition = builder.group_repartitions.setdefault(on, repartition)
    builder.attach(repartition, on.node)
    builder.read_instead(source, repartition)
    changes = Changes()
    behavior = TableAggregate(store.name, functions_of(call))
    declares = WritesProcessor(name, (store,), behavior=behavior, changes=changes)
    node = builder.add(name, declares, repartition, versioned=is_versioned(call.materialized))
    return Table(name, frozenset({source}), node, View.of(store.name), changes, record)
