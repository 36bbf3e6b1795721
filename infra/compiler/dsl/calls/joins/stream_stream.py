"""Stream-stream joins (facts 1.4, 1.6)."""

import attrs

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.joins.window_faults import faults_of_window
from infra.compiler.dsl.calls.repartitions import repartitioned_for_join
from infra.compiler.dsl.declarations import WritesProcessor, WritesStreamJoin
from infra.compiler.dsl.formats import told
from infra.compiler.dsl.handles import Handle, Stream
from infra.compiler.dsl.refusals import unfit
from infra.compiler.dsl.stores import Store, join_store, shared_join_store, supplied_join_store
from infra.model import operators as op
from infra.model.behaviours import JoinKind, JoinWindowed, RecordFormat, StreamStreamJoin
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
    base = call.store_name
    this_default = this_generated if base is None else base + this_suffix
    other_default = other_generated if base is None else base + other_suffix
    stores = _Stores(call, window, object())
    this_store = stores.make(call.this_supplier, this_default, this.record)
    other_store = stores.make(call.other_supplier, other_default, that.record)
    shared = None
    if left:
        shared_name = _shared_name(call, this_generated)
        shared = shared_join_store(shared_name, call.logging, this.record, that.record)
    if base is None:
        for store in (this_store, other_store, *([shared] if shared is not None else [])):
            builder.list_unnamed_store(store.name, logged=store.logged)

    builder.add(this_windowed, _windows(this_windowed, this_store), this.node)
    other_node = builder.add(other_windowed, _windows(other_windowed, other_store), that.node)
    kind: JoinKind = "outer" if outer else "left" if left else "inner"
    waiting = shared.name if shared is not None else None
    left_side = StreamStreamJoin(
        kind,
        is_left=True,
        window=window,
        value=call.value,
        own_store=this_store.name,
        other_store=other_store.name,
        shared=waiting,
    )
    declares = WritesStreamJoin(
        this_windowed,
        other_windowed,
        this_join,
        other_join,
        merge,
        this_store,
        other_store,
        shared,
        left_side,
        attrs.evolve(left_side, is_left=False, own_store=other_store.name, other_store=this_store.name),
    )
    node = builder.add(merge, declares, this.node, that.node, relaxes_null_keys=left)
    builder.other_windowed[node] = other_node
    return Stream(merge, this.sources | that.sources, node, record=told(this.record, call.serdes))


def _windows(name: str, store: Store) -> WritesProcessor:
    return WritesProcessor(name, (store,), behaviour=JoinWindowed(store.name))


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


@attrs.frozen
class _Stores:
    """Makes both window stores of a join: as supplied, or by default of one builder (`same_as`)."""

    call: op.Join
    window: JoinWindow
    same_as: object

    def make(self, supplier: StoreSupplier | None, name: str, record: RecordFormat) -> Store:
        if supplier is not None:
            return supplied_join_store(supplier, self.window, record)
        return join_store(f"{name}-store", self.window, self.call.logging, self.same_as, record)


def _shared_name(call: op.Join, this_generated: str) -> str:
    outer = call.type is JoinType.OUTER
    suffix = "-outer-shared-join" if outer else "-left-shared-join"
    if call.this_supplier is not None and call.this_supplier.name:
        return f"{call.this_supplier.name}{suffix}-store"
    if call.store_name is not None:
        return f"{call.store_name}{suffix}-store"
    return f"{SHARED}{this_generated.removeprefix(OUTER_THIS if outer else THIS)}-store"
