"""Stream-stream joins (facts 1.4, 1.6)."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.joins.window_faults import faults_of_window
from infra.compiler.dsl.calls.repartitions import repartitioned_for_join
from infra.compiler.dsl.declarations import WritesProcessor, WritesStreamJoin
from infra.compiler.dsl.handles import Handle, Stream
from infra.compiler.dsl.refusals import unfit
from infra.compiler.dsl.stores import Store, join_store, shared_join_store, supplied_join_store
from infra.model import operators as op
from infra.model.operators import JoinType
from infra.model.stores import StoreSupplier
from infra.model.windows import JoinWindow

THIS = "KSTREAM-JOINTHIS-"
OUTER_THIS = "KSTREAM-OUTERTHIS-"
OTHER = "KSTREAM-JOINOTHER-"
OUTER_OTHER = "KSTREAM-OUTEROTHER-"
SHARED = "KSTREAM-OUTERSHARED-"
WINDOWED = "KSTREAM-WINDOWED-"


def join_streams(builder: Builder, on: Stream, call: op.Join, other: Stream) -> Handle:
    window = call.window
    if window is None:
        return builder.refuse(
            unfit(
                "A stream-stream join needs a window.",
                node=call.name,
                expected="window: {difference: …} or {before: …, after: …}",
                found="none",
                at=builder.at,
                fix="Say how far apart in time two records may be.",
            )
        )
    builder.problems.extend(faults_of_window(call, window, builder.at))
    this, that = _copartitioned(builder, on, call, other)
    left, outer = call.type is not JoinType.INNER, call.type is JoinType.OUTER
    this_suffix = "-outer-this-join" if outer else "-this-join"
    other_suffix = "-outer-other-join" if left else "-other-join"

    this_windowed = builder.suffixed(call.name, "-this-windowed", WINDOWED)
    other_windowed = builder.suffixed(call.name, "-other-windowed", WINDOWED)
    this_generated = builder.names.processor(OUTER_THIS if outer else THIS)
    other_generated = builder.names.processor(OUTER_OTHER if left else OTHER)
    this_join = call.name + this_suffix if call.name is not None else this_generated
    other_join = call.name + other_suffix if call.name is not None else other_generated
    merge = builder.suffixed(call.name, "-merge", "KSTREAM-MERGE-")

    # default store names follow the generated names of the joins, also when the join has a name
    base, same_join = call.store_name, object()
    this_default = this_generated if base is None else base + this_suffix
    other_default = other_generated if base is None else base + other_suffix
    this_store = _store(call, call.this_supplier, this_default, window, same_join)
    other_store = _store(call, call.other_supplier, other_default, window, same_join)
    shared = shared_join_store(_shared_name(call, this_generated), call.logging) if left else None
    if base is None:
        for store in (this_store, other_store, *([shared] if shared is not None else [])):
            builder.list_unnamed_store(store.name, logged=store.logged)

    builder.add(this_windowed, WritesProcessor(this_windowed, (this_store,)), this.node)
    other_node = builder.add(other_windowed, WritesProcessor(other_windowed, (other_store,)), that.node)
    declares = WritesStreamJoin(
        this_windowed, other_windowed, this_join, other_join, merge, this_store, other_store, shared
    )
    node = builder.add(merge, declares, this.node, that.node, relaxes_null_keys=left)
    builder.other_windowed[node] = other_node
    return Stream(merge, this.sources | that.sources, node)


def _copartitioned(builder: Builder, on: Stream, call: op.Join, other: Stream) -> tuple[Stream, Stream]:
    """Both sides as the join reads them; a topic is named after the join, else after its stream."""
    sides = []
    for side, suffix in ((on, "-left"), (other, "-right")):
        prefix = call.name + suffix if call.name is not None else side.name
        sides.append(
            repartitioned_for_join(builder, side, prefix, named_by_user=call.name is not None)
            if side.rekeyed
            else side
        )
    this, that = sides
    builder.copartition(this.sources | that.sources)
    return this, that


def _store(
    call: op.Join, supplier: StoreSupplier | None, name: str, window: JoinWindow, same_join: object
) -> Store:
    if supplier is not None:
        return supplied_join_store(supplier)
    return join_store(f"{name}-store", window, call.logging, same_join)


def _shared_name(call: op.Join, this_generated: str) -> str:
    outer = call.type is JoinType.OUTER
    suffix = "-outer-shared-join" if outer else "-left-shared-join"
    if call.this_supplier is not None and call.this_supplier.name:
        return f"{call.this_supplier.name}{suffix}-store"
    if call.store_name is not None:
        return f"{call.store_name}{suffix}-store"
    return f"{SHARED}{this_generated.removeprefix(OUTER_THIS if outer else THIS)}-store"
