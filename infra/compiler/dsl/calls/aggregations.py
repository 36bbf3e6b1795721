"""`count`, `reduce` and `aggregate` of grouped and windowed streams."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.materialization import accepts_supplier, windowed_retention_ms
from infra.compiler.dsl.declarations import WritesProcessor
from infra.compiler.dsl.handles import GroupedStream, Handle, Table, View, WindowedStream
from infra.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    Store,
    close_grace_ms,
    is_versioned,
    key_value_store,
    windowed_store,
)
from infra.model import operators as op
from infra.model.stores import Materialized
from infra.model.windows import SlidingWindow

REDUCE = "KSTREAM-REDUCE-"
AGGREGATE = "KSTREAM-AGGREGATE-"


def count(builder: Builder, on: GroupedStream, call: op.Count) -> Handle:
    _burn_for_unnamed_count(builder, call)
    return _aggregate(builder, on, call.name, call.materialized, AGGREGATE, "count")


def reduce(builder: Builder, on: GroupedStream, call: op.Reduce) -> Handle:
    return _aggregate(builder, on, call.name, call.materialized, REDUCE, "reduce")


def aggregate(builder: Builder, on: GroupedStream, call: op.Aggregate) -> Handle:
    return _aggregate(builder, on, call.name, call.materialized, AGGREGATE, "aggregate")


def windowed_count(builder: Builder, on: WindowedStream, call: op.Count) -> Handle:
    if not isinstance(on.window, SlidingWindow):
        _burn_for_unnamed_count(builder, call)
    return _windowed(builder, on, call.name, call.materialized, AGGREGATE, "count")


def windowed_reduce(builder: Builder, on: WindowedStream, call: op.Reduce) -> Handle:
    return _windowed(builder, on, call.name, call.materialized, REDUCE, "reduce")


def windowed_aggregate(builder: Builder, on: WindowedStream, call: op.Aggregate) -> Handle:
    return _windowed(builder, on, call.name, call.materialized, AGGREGATE, "aggregate")


def _burn_for_unnamed_count(builder: Builder, call: op.Count) -> None:
    """`count(Materialized)` without a name takes a store index twice (facts 1.4)."""
    if call.materialized is not None and call.materialized.store_name is None:
        builder.names.burn()


def _aggregate(
    builder: Builder,
    on: GroupedStream,
    name: str | None,
    materialized: Materialized | None,
    prefix: str,
    call: str,
) -> Table:
    accepts_supplier(builder, materialized, KEY_VALUE_KINDS, call)
    store = key_value_store(builder.store_name(materialized, prefix), materialized)
    return _table(builder, on, builder.named(name, prefix), store, materialized, None)


def _windowed(
    builder: Builder,
    on: WindowedStream,
    name: str | None,
    materialized: Materialized | None,
    prefix: str,
    call: str,
) -> Table:
    store_name = builder.store_name(materialized, prefix)
    processor = builder.named(name, prefix)
    retention = windowed_retention_ms(builder, materialized, on.window, store_name, call)
    store = windowed_store(store_name, materialized, retention)
    return _table(builder, on.grouped, processor, store, materialized, close_grace_ms(on.window))


def _table(
    builder: Builder,
    on: GroupedStream,
    name: str,
    store: Store,
    materialized: Materialized | None,
    grace_ms: int | None,
) -> Table:
    """`GroupedStreamAggregateBuilder#build`."""
    is_named = materialized is not None and materialized.store_name is not None
    parent, sources = on.node, on.sources
    if on.rekeyed:
        parent = builder.repartition(
            on.group if on.group is not None else store.name,
            named_by_user=on.group is not None or is_named,
        )
        sources = frozenset({parent.name})
        if on.group is not None:
            made, parent = parent, builder.group_repartitions.setdefault(on, parent)
            if made.name != parent.name:
                builder.lose(
                    made.name,
                    f"the aggregation reads the topic of the group's first one ({parent.name})",
                    frozenset({parent.name}),
                )
        builder.attach(parent, on.node)
    node = builder.add(
        name,
        WritesProcessor(name, (store,)),
        parent,
        versioned=grace_ms is None and is_versioned(materialized),
        grace_ms=grace_ms,
    )
    return Table(name, sources, node, View((store.name,)))
