"""Joins of a stream with a table or with a global table."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.repartitions import repartitioned_for_join
from headwater.compiler.dsl.declarations import ProcessorDeclaration
from headwater.compiler.dsl.formats import with_serdes
from headwater.compiler.dsl.handles import GlobalTable, Handle, Stream, Table
from headwater.compiler.dsl.problems import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import Store
from headwater.compiler.version_differences import NULL_GLOBAL_KEYS, STORES_OF_SUPPLIERS_FIRST
from headwater.model import operators as op
from headwater.model.behaviors import RecordFormat, StoreSettings, StreamGlobalJoin, StreamTableJoin
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
    buffer = _buffer(builder, call, name, table, this.record)
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


def _buffer(
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
