"""Table-table joins on the same key."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.declarations import TableJoinDeclaration
from headwater.compiler.dsl.formats import with_serdes, with_store_serdes
from headwater.compiler.dsl.handles import Handle, Table, View
from headwater.compiler.dsl.old_values import OldValues
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, is_versioned, key_value_store
from headwater.compiler.java.collections import string_order_from
from headwater.model import operators as op
from headwater.model.behaviors import JoinedView, TableTableJoin
from headwater.model.operators import JoinType

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
