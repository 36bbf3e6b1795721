"""Stream-stream joins (facts 1.4, 1.6)."""

from collections.abc import Iterator

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.streams import repartitioned_for_join
from headwater.compiler.dsl.declarations import ProcessorDeclaration, StreamJoinDeclaration
from headwater.compiler.dsl.formats import with_serdes
from headwater.compiler.dsl.handles import Handle, Stream
from headwater.compiler.dsl.messages import ARGUMENT, STREAMS, lint_problem, topology_error, unsupported_call
from headwater.compiler.dsl.stores import (
    WINDOW_KINDS,
    Store,
    join_retention_ms,
    join_settings,
    join_store,
    shared_join_store,
    supplied_join_store,
    supplier_problems,
)
from headwater.compiler.version_differences import ASYMMETRIC_WINDOWS
from headwater.model import operators as op
from headwater.model.behaviors import JoinWindowed, StreamStreamJoin
from headwater.model.durations import duration_text
from headwater.model.formats import RecordFormat
from headwater.model.operators import JoinType
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.stores import StoreSupplier
from headwater.model.versions import KafkaStreamsVersion
from headwater.model.windows import JoinWindow

THIS = "KSTREAM-JOINTHIS-"
OUTER_THIS = "KSTREAM-OUTERTHIS-"
OTHER = "KSTREAM-JOINOTHER-"
OUTER_OTHER = "KSTREAM-OUTEROTHER-"
SHARED = "KSTREAM-OUTERSHARED-"
WINDOWED = "KSTREAM-WINDOWED-"


def join_streams(builder: Builder, on: Stream, call: op.Join, other: Stream) -> Handle:
    """`KStreamImplJoin#join`: a window store for each side, and for left and outer joins a shared store.

    The shared store has the records without a join result so far. Joins with an eager window do not have it,
    but Kafka Streams counts it among the unnamed stores all the same.
    """
    window = call.window
    if window is None:
        return builder.reject(_missing_window(call))
    builder.problems.extend(_join_window_problems(call, window, builder.at))
    this, that = _copartition_sides(builder, on, call, other)
    names = _take_names(builder, call)
    this_store, other_store, shared = _take_stores(builder, call, window, names, (this, that))
    builder.add(names.this_windowed, _window_processor(names.this_windowed, this_store), this.node)
    other_node = builder.add(
        names.other_windowed, _window_processor(names.other_windowed, other_store), that.node
    )
    left_side = StreamStreamJoin(
        call.type.kind,
        is_left=True,
        window=window,
        value=call.value,
        own_store=this_store.name,
        other_store=other_store.name,
        shared=shared.name if shared is not None else None,
        closes_by_own_side=ASYMMETRIC_WINDOWS.is_in(builder.config.version),
    )
    declares = StreamJoinDeclaration(
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
    return Stream(
        names.merge, this.sources | that.sources, node, record=with_serdes(this.record, call.serdes)
    )


def _take_stores(
    builder: Builder, call: op.Join, window: JoinWindow, names: "_Names", sides: tuple[Stream, Stream]
) -> tuple[Store, Store, Store | None]:
    """Return the store of each side, and the shared store of a left or outer join."""
    this, that = sides
    stores = _Stores(call, window, object(), builder.config.version)
    this_store = stores.make(call.this_supplier, names.this_store, this.record)
    other_store = stores.make(call.other_supplier, names.other_store, that.record)
    shared = None
    if call.type is not JoinType.INNER:
        shared = shared_join_store(names.shared_store, call.logging, this.record, that.record)
    if call.store_name is None:
        for store in (this_store, other_store, *([shared] if shared is not None else [])):
            builder.list_unnamed_store(store.name, logged=store.logged)
    return this_store, other_store, None if window.eager else shared


@attrs.frozen
class _Names:
    """The names of nodes and stores; a store supplier has its own name."""

    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    merge: str
    this_store: str
    other_store: str
    shared_store: str


def _take_names(builder: Builder, call: op.Join) -> _Names:
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


def _window_processor(name: str, store: Store) -> ProcessorDeclaration:
    return ProcessorDeclaration(name, (store,), behavior=JoinWindowed(store.name))


def _copartition_sides(builder: Builder, on: Stream, call: op.Join, other: Stream) -> tuple[Stream, Stream]:
    """Return both sides as the join reads them.

    A repartition topic is named after the join, or after its stream if the join has no name.
    """
    sides = []
    for side, suffix in ((on, "-left"), (other, "-right")):
        prefix = call.name + suffix if call.name is not None else side.name
        sides.append(
            repartitioned_for_join(builder, side, prefix, named_by_user=call.name is not None)
            if side.repartition_required
            else side
        )
    this, that = sides
    builder.copartition(this.sources | that.sources)
    return this, that


@attrs.frozen
class _Stores:
    """Creates both window stores of a join, from a supplier or from one default builder (`same_as`)."""

    call: op.Join
    window: JoinWindow
    same_as: object
    version: KafkaStreamsVersion

    def make(self, supplier: StoreSupplier | None, name: str, record: RecordFormat) -> Store:
        if supplier is not None:
            return supplied_join_store(supplier, self.window, record, self.version)
        settings = join_settings(self.window, record, self.version)
        return join_store(f"{name}-store", self.window, self.call.logging, self.same_as, settings)


def _shared_name(call: op.Join, this_generated: str) -> str:
    outer = call.type is JoinType.OUTER
    suffix = "-outer-shared-join" if outer else "-left-shared-join"
    if call.this_supplier is not None and call.this_supplier.name:
        return f"{call.this_supplier.name}{suffix}-store"
    if call.store_name is not None:
        return f"{call.store_name}{suffix}-store"
    return f"{SHARED}{this_generated.removeprefix(OUTER_THIS if outer else THIS)}-store"


def _missing_window(call: op.Join) -> Problem:
    return unsupported_call(
        "A stream-stream join needs a window.",
        node=call.name,
        expected="window: {difference: …} or {before: …, after: …}",
        found="none",
        fix="Set how far apart in time two joined records may be.",
    )


def _join_window_problems(call: op.Join, window: JoinWindow, at: Location | None) -> Iterator[Problem]:
    """Return the problems that `JoinWindows` and `KStreamImplJoin` report, and ignored logging settings."""
    if window.before_ms + window.after_ms < 0 or window.grace_ms < 0:
        yield topology_error(
            "The join's window has a negative length or grace.",
            throws=ARGUMENT,
            node=call.name,
            expected="before + after and grace of 0ms or more",
            found=f"before {duration_text(window.before_ms)}, after {duration_text(window.after_ms)}, "
            f"grace {duration_text(window.grace_ms)}",
            at=at,
            fix="Widen the window.",
        )
    suppliers = [each for each in (call.this_supplier, call.other_supplier) if each is not None]
    if len({supplier.name for supplier in suppliers}) < len(suppliers):
        yield topology_error(
            f"Both store suppliers of the join are named {suppliers[0].name}.",
            throws=STREAMS,
            node=suppliers[0].name,
            expected="two names",
            found=suppliers[0].name,
            at=at,
            fix="Name the two stores differently.",
        )
    for supplier in suppliers:
        yield from supplier_problems(supplier, at)
        yield from _supplier_mismatches(supplier, window, at)
    if call.logging is not None and not (call.logging.enabled and not call.logging.overrides):
        yield from (_logging_ignored(call, supplier, at) for supplier in suppliers)


def _supplier_mismatches(
    supplier: StoreSupplier, window: JoinWindow, at: Location | None
) -> Iterator[Problem]:
    durations = (
        ("windowSize", window.before_ms + window.after_ms, supplier.window_size_ms),
        ("retention", join_retention_ms(window), supplier.retention_ms),
    )
    for option, fits, expected, found in (
        ("kind", supplier.kind in WINDOW_KINDS, "window", supplier.kind.value),
        ("retainDuplicates", supplier.retain_duplicates, "true", str(supplier.retain_duplicates).lower()),
        *(
            (name, wanted == given, duration_text(wanted), duration_text(given))
            for name, wanted, given in durations
        ),
    ):
        if not fits:
            yield topology_error(
                f"The `{option}` of the join's store {supplier.name} does not fit its window.",
                throws=STREAMS,
                node=supplier.name,
                expected=f"{option} {expected}",
                found=found,
                at=at,
                fix=f"Set `{option}` of the supplier to {expected}.",
            )


def _logging_ignored(call: op.Join, supplier: StoreSupplier, at: Location | None) -> Problem:
    wanted = call.logging is not None and call.logging.enabled
    return lint_problem(
        ProblemCode.LOGGING_IGNORED,
        f"The join's logging settings have no effect on its store {supplier.name}.",
        node=supplier.name,
        expected="the given changelog configs" if wanted else "logging off",
        found="logged, with the default configs",
        why="Kafka Streams wraps a supplied join store in its own builder, which always logs and has no "
        "overrides. The settings still apply to the shared store of a left or outer join.",
        at=at,
        fix="Name the stores with `storeName` instead of supplying them, or remove `logging`.",
    )
