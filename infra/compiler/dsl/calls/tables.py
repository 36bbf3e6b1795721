"""Calls on a `KTable` that neither join nor suppress it."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.materialization import check_materialized
from infra.compiler.dsl.declarations import WritesProcessor
from infra.compiler.dsl.handles import GroupedTable, Handle, Stream, Table, View
from infra.compiler.dsl.refusals import lint
from infra.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned, key_value_store
from infra.model import operators as op
from infra.model.operators import TransformKind
from infra.model.problems import Problem, ProblemCode
from infra.model.stores import Materialized

_PREFIXES = {
    TransformKind.FILTER: "KTABLE-FILTER-",
    TransformKind.FILTER_NOT: "KTABLE-FILTER-",
    TransformKind.MAP_VALUES: "KTABLE-MAPVALUES-",
}
TRANSFORM_VALUES = "KTABLE-TRANSFORMVALUES-"


def transform(builder: Builder, on: Table, call: op.Transform) -> Handle:
    prefix = _PREFIXES[call.kind]
    if call.materialized is not None and call.materialized.store_name is None:
        builder.names.burn()
    store = _own_store(builder, call.materialized)
    name = builder.named(call.name, prefix)
    declares = WritesProcessor(name, () if store is None else (store,))
    return _derived(builder, on, declares, call.materialized, store)


def transform_values(builder: Builder, on: Table, call: op.TransformValues) -> Handle:
    store = _own_store(builder, call.materialized)
    name = builder.named(call.name, TRANSFORM_VALUES)
    if call.connected:
        builder.refuse(_ignored(builder, name, call))
    declares = WritesProcessor(name, () if store is None else (store,), call.stores)
    return _derived(builder, on, declares, call.materialized, store)


def _ignored(builder: Builder, name: str, call: op.TransformValues) -> Problem:
    return lint(
        ProblemCode.UNUSED_STORE,
        f"`transformValues` of a table does not add the stores that its supplier brings along ({name}).",
        node=name,
        expected="stores by name",
        found="stores in place: " + ", ".join(store.name for store in call.connected),
        why="Kafka Streams never asks the supplier for them: they get no changelog, and the transformer "
        "finds no such store when it starts.",
        at=builder.at,
        fix="Add the stores with `addStateStore` and name them in `stores`.",
    )


def _own_store(builder: Builder, materialized: Materialized | None) -> Store | None:
    """Only a store with a name is made; a `Materialized` without one changes nothing but the counter."""
    check_materialized(builder, materialized, KEY_VALUE_KINDS)
    name = materialized.store_name if materialized is not None else None
    return key_value_store(name, materialized) if name is not None else None


def _derived(
    builder: Builder,
    on: Table,
    declares: WritesProcessor,
    materialized: Materialized | None,
    store: Store | None,
) -> Table:
    node = builder.add(
        declares.name,
        declares,
        on.node,
        versioned=is_versioned(materialized) if materialized is not None else None,
    )
    return Table(declares.name, on.sources, node, on.view if store is None else View((store.name,)))


def to_stream(builder: Builder, on: Table, call: op.ToStream) -> Handle:
    name = builder.named(call.name, "KTABLE-TOSTREAM-")
    node = builder.add(name, WritesProcessor(name), on.node)
    if not call.selects_key:
        return Stream(name, on.sources, node)
    selector = builder.names.processor("KSTREAM-KEY-SELECT-")
    selected = builder.add(selector, WritesProcessor(selector), node, changes_key=True)
    return Stream(selector, on.sources, selected, rekeyed=True)


def group_by(builder: Builder, on: Table, call: op.GroupBy) -> Handle:
    name = builder.named(call.name, "KTABLE-SELECT-")
    node = builder.add(name, WritesProcessor(name), on.node)
    on.view.materialize()
    return GroupedTable(name, node, call.name)
