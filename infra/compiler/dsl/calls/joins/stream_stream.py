"""Stream-stream joins (facts 1.4, 1.6)."""

import attrs

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.joins.kinds import KINDS
from infra.compiler.dsl.calls.joins.window_faults import faults_of_window
from infra.compiler.dsl.calls.repartitions import repartitioned_for_join
from infra.compiler.dsl.declarations import WritesProcessor, WritesStreamJoin
from infra.compiler.dsl.formats import told
from infra.compiler.dsl.handles import Handle, Stream
from infra.compiler.dsl.refusals import unfit
from infra.compiler.dsl.stores import Store, join_store, shared_join_store, supplied_join_store
from infra.model import operators as op
from infra.model.behaviors import JoinWindowed, RecordFormat, StreamStreamJoin
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
    """`KStreamImplJoin#join`: a window store a side, and but for inner joins one for who has no partner."""
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
    names = _burn(builder, call)
    stores = _Stores(call, window, object())
    this_store = stores.make(call.this_supplier, names.this_store, this.record)
    other_store = stores.make(call.other_supplier, names.other_store, that.record)
    shared = None
    if call.type is not JoinType.INNER:
        shared = shared_join_store(names.shared_store, call.logging, this.record, that.record)
    if call.store_name is None:
        for store in (this_store, other_store, *([shared] if shared is not None else [])):
            builder.list_unnamed_store(store.name, logged=store.logged)

    builder.add(names.this_windowed, _windows(names.this_windowed, this_store), this.node)
    other_node = builder.add(names.other_windowed, _windows(names.other_windowed, other_store), that.node)
    left_side = StreamStreamJoin(
        KINDS[call.type],
        is_left=True,
        window=window,
        value=call.value,
        own_store=this_store.name,
        other_store=other_store.name,
        shared=shared.name if shared is not None else None,
    )
    declares = WritesStreamJoin(
        names.this_windowed,
        names.other_windowed,
        names.this_join,
        names.other_join,
        names.merge,
        this_store,
        other_store,
        shared,
        left_side,
        attrs.evolve(left_side, is_left=False, own_store=other_store.name, other_store=this_store.name),
    )
    relaxes = call.type is not JoinType.INNER
    node = builder.add(names.merge, declares, this.node, that.node, relaxes_null_keys=relaxes)
    builder.other_windowed[node] = other_node
    return Stream(names.merge, this.sources | that.sources, node, record=told(this.record, call.serdes))


@attrs.frozen
class _Names:
    """Stores' are those of suppliers that name none."""

    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    merge: str
    this_store: str
    other_store: str
    shared_store: str


def _burn(builder: Builder, call: op.Join) -> _Names:
    left, outer = call.type is not JoinType.INNER, call.type is JoinType.OUTER
    this_suffix = "-outer-this-join" if outer else "-this-join"
    other_suffix = "-outer-other-join" if left else "-other-join"
    this_windowed = builder.suffixed(call.name, "-this-windowed", WINDOWED)
    other_windowed = builder.suffixed(call.name, "-other-windowed", WINDOWED)
    this_generated = builder.names.processor(OUTER_THIS if outer else THIS)
    other_generated = builder.names.processor(OUTER_OTHER if left else OTHER)
    merge = builder.suffixed(call.name, "-merge", "KSTREAM-MERGE-")
    # stores are named after the generated names of the joins, also when the join has a name
    base = call.store_name
    return _Names(
        this_windowed,
        other_windowed,
        this_generated if call.name is None else call.name + this_suffix,
        other_generated if call.name is None else call.name + other_suffix,
        merge,
        this_generated if base is None else base + this_suffix,
        other_generated if base is None else base + other_suffix,
        _shared_name(call, this_generated),
    )


def _windows(name: str, store: Store) -> WritesProcessor:
    return WritesProcessor(name, (store,), behavior=JoinWindowed(store.name))


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
