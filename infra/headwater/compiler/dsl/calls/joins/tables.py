"""Joins of a stream with a table or a global table, and of two tables."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.calls.streams import repartitioned_for_join
from headwater.compiler.dsl.declarations import OldValues, ProcessorDeclaration, TableJoinDeclaration
from headwater.compiler.dsl.formats import with_serdes, with_store_serdes
from headwater.compiler.dsl.handles import GlobalTable, Handle, Stream, Table, View
from headwater.compiler.dsl.messages import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned, key_value_store
from headwater.compiler.java.collections import string_order_from
from headwater.compiler.version_differences import NULL_GLOBAL_KEYS, STORES_OF_SUPPLIERS_FIRST
from headwater.model import operators as op
from headwater.model.behaviors import (
    JoinedView,
    RecordFormat,
    StoreSettings,
    StreamGlobalJoin,
    StreamTableJoin,
    TableTableJoin,
)
from headwater.model.nodes import ChangelogKind
from headwater.model.operators import JoinType


def join_stream_with_table(builder: Builder, on: Stream, call: op.Join, table: Table) -> Handle:
    """`KStreamImpl#doStreamTableJoin`: only the stream is repartitioned, if its key may have changed."""
    this = on
    if on.repartition_required:
        prefix = call.name if call.name is not None else on.name
        this = repartitioned_for_join(builder, on, prefix, named_by_user=call.name is not None)
    sources = builder.copartition(this.sources | table.sources)
    left = call.type is JoinType.LEFT
    name = builder.named(call.name, "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-")
    buffer = _buffer_stores(builder, call, name, table, this.record)
    behavior = StreamTableJoin(
        call.type.kind,
        call.value,
        table.view.values,
        call.grace_ms,
        buffer[0].name if buffer else None,
    )
    history = call.grace_ms if table.node.versioned is not False else None
    declares = ProcessorDeclaration(
        name,
        buffer,
        table.view.materialize(),
        required_history_ms=history,
        behavior=behavior,
        connected_first=not STORES_OF_SUPPLIERS_FIRST.is_in(builder.config.version),
    )
    node = builder.add(name, declares, this.node, relaxes_null_keys=left)
    return Stream(name, sources, node, record=with_serdes(this.record, call.serdes))


def _buffer_stores(
    builder: Builder, call: op.Join, name: str, table: Table, record: RecordFormat
) -> tuple[Store, ...]:
    """Return the buffer store of a join with a grace period; it is always logged."""
    if call.grace_ms is None:
        return ()
    if table.node.versioned is False:
        builder.reject(
            topology_error(
                f"{name} has a grace period, but table {table.name} is not versioned.",
                throws=ARGUMENT,
                node=name,
                expected="a versioned table",
                found="a table that is not versioned",
                at=builder.at,
                fix="Give the table a supplier of a versionedKeyValue store, or drop `grace`.",
            )
        )
    store = Store(
        f"{name}-Buffer", ChangelogKind.KEY_VALUE, keeps=StoreSettings("joinBuffer", record, call.grace_ms)
    )
    if call.name is None:
        builder.list_unnamed_store(store.name, logged=True)
    return (store,)


def join_stream_with_global_table(builder: Builder, on: Stream, call: op.Join, table: GlobalTable) -> Handle:
    """`KStreamImpl#globalTableJoin`: no co-partitioning, no store; all joins have the same prefix."""
    name = builder.named(call.name, "KSTREAM-LEFTJOIN-")
    behavior = StreamGlobalJoin(
        call.type.kind,
        call.key,
        call.value,
        table.store,
        forwards_null_table_keys=NULL_GLOBAL_KEYS.is_in(builder.config.version),
    )
    node = builder.add(
        name,
        ProcessorDeclaration(name, behavior=behavior),
        on.node,
        relaxes_null_keys=call.type is JoinType.LEFT,
    )
    return Stream(name, on.sources, node, on.repartition_required, with_serdes(on.record, call.serdes))


MERGE = "KTABLE-MERGE-"


def join_tables(builder: Builder, on: Table, call: op.Join, other: Table) -> Handle:
    """`KTableImpl#doJoin`: the result has its own store only if a `Materialized` is passed.

    Otherwise its values are computed from the stores of both parents.
    """
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = with_serdes(with_store_serdes(on.record, call.materialized), call.serdes)
    store = None
    if call.materialized is not None:
        store = key_value_store(builder.store_name(call.materialized, MERGE), call.materialized, record)
    merge = builder.named(call.name, MERGE)
    sources = builder.copartition(on.sources | other.sources)
    this_join = builder.suffixed(call.name, "-join-this", "KTABLE-JOINTHIS-")
    other_join = builder.suffixed(call.name, "-join-other", "KTABLE-JOINOTHER-")
    this_stores, other_stores = on.view.materialize(), other.view.materialize()
    kind = call.type.kind
    if call.type is not JoinType.INNER:
        on.old_values.enable()
    if call.type is JoinType.OUTER:
        other.old_values.enable()
    old_values = OldValues((on.old_values, other.old_values))
    left, right = on.view.values, other.view.values
    declares = TableJoinDeclaration(
        on.name,
        other.name,
        this_join,
        other_join,
        merge,
        this_stores,
        other_stores,
        store,
        TableTableJoin(kind, is_left=True, value=call.value, own=left, other=right),
        TableTableJoin(kind, is_left=False, value=call.value, own=right, other=left),
        old_values,
    )
    node = builder.add(merge, declares, on.node, other.node, versioned=is_versioned(call.materialized))
    if store is not None:
        return Table(merge, sources, node, View.of(store.name), old_values, record)
    values = JoinedView(kind, left, right, call.value)
    view = View(_seen_through(this_stores, other_stores), values)
    return Table(merge, sources, node, view, old_values, record)


def _seen_through(this_stores: tuple[str, ...], other_stores: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stores of both sides in the order of `KTableKTableAbstractJoinValueGetterSupplier`.

    Each side of the merge collects them in a hash set, and the merge collects both sets in another one.
    """
    stores = string_order_from(len(this_stores) + len(other_stores), (*this_stores, *other_stores))
    return string_order_from(2 * len(stores), stores)
