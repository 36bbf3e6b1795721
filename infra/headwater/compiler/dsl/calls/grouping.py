"""Calls on grouped and windowed streams and tables: grouping and aggregations."""

from headwater.compiler.dsl.builder import REPARTITION_SUFFIX, Builder
from headwater.compiler.dsl.calls.materialization import check_materialized, windowed_retention_ms
from headwater.compiler.dsl.declarations import OldValues, ProcessorDeclaration, RepartitionDeclaration
from headwater.compiler.dsl.formats import (
    with_long_value,
    with_new_key,
    with_serdes,
    with_store_serdes,
    with_windowed_key,
)
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import (
    GroupedStream,
    GroupedTable,
    Handle,
    Stream,
    Table,
    View,
    WindowedStream,
)
from headwater.compiler.dsl.messages import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    Store,
    close_grace_ms,
    is_versioned,
    key_value_store,
    windowed_store,
)
from headwater.compiler.version_differences import SESSION_WITHOUT_GAP
from headwater.model import operators as op
from headwater.model.behaviors import Aggregation as Functions
from headwater.model.behaviors import AggregationKind, MapRecord, StreamAggregate, TableAggregate
from headwater.model.durations import duration_text
from headwater.model.formats import RecordFormat
from headwater.model.windows import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)


def group_by_key(_builder: Builder, on: Stream, call: op.GroupByKey) -> Handle:
    return GroupedStream(
        on.name, on.sources, on.node, on.repartition_required, call.name, with_serdes(on.record, call.serdes)
    )


def group_by(builder: Builder, on: Stream, call: op.GroupBy) -> Handle:
    """`KStream#groupBy`: the name of `Grouped` is also the name of the key selector node."""
    name = builder.named(call.name, "KSTREAM-KEY-SELECT-")
    declares = ProcessorDeclaration(name, behavior=MapRecord(call.key, keeps_value=True))
    record = with_new_key(on.record, call.serdes)
    node = builder.add(name, declares, on.node, changes_key=True)
    return GroupedStream(name, on.sources, node, repartition_required=True, group=call.name, record=record)


def windowed_by(builder: Builder, on: GroupedStream, call: op.WindowedBy) -> Handle:
    check_window(builder, call.window)
    if call.emit_on_close and isinstance(call.window, UnlimitedWindow):
        builder.reject(
            topology_error(
                "An unlimited window never closes, so it cannot emit on close.",
                throws=ARGUMENT,
                expected="emit on update",
                found="emit: onWindowClose",
                fix="Remove `emit`, or choose a window that ends.",
            )
        )
    return WindowedStream(on, call.window, call.emit_on_close)


def check_window(builder: Builder, window: Window) -> None:
    """Check a window as the constructors of the window classes do."""
    wrong = _wrong_options(window)
    no_gap = isinstance(window, SessionWindow) and window.gap_ms == 0
    if no_gap and not SESSION_WITHOUT_GAP.is_in(builder.config.version):
        wrong.append(("gap", "more than 0ms", 0))
    for option, expected, found in wrong:
        builder.reject(
            topology_error(
                f"The window's {option} is out of range.",
                throws=ARGUMENT,
                expected=expected,
                found=duration_text(found),
                fix=f"Set `{option}` to {expected}.",
            )
        )


def _wrong_options(window: Window) -> list[tuple[str, str, int]]:
    wrong: list[tuple[str, str, int]] = []
    if isinstance(window, TumblingWindow | HoppingWindow) and window.size_ms <= 0:
        wrong.append(("size", "more than 0ms", window.size_ms))
    elif isinstance(window, HoppingWindow) and not 0 < window.advance_ms <= window.size_ms:
        wrong.append(
            (
                "advance",
                f"more than 0ms and at most the size, {duration_text(window.size_ms)}",
                window.advance_ms,
            )
        )
    elif isinstance(window, SlidingWindow) and window.difference_ms < 0:
        wrong.append(("difference", "0ms or more", window.difference_ms))
    elif isinstance(window, SessionWindow) and window.gap_ms < 0:
        wrong.append(("gap", "0ms or more", window.gap_ms))
    elif isinstance(window, UnlimitedWindow) and window.start_ms < 0:
        wrong.append(("start", "0ms or more", window.start_ms))
    if not isinstance(window, UnlimitedWindow) and window.grace_ms < 0:
        wrong.append(("grace", "0ms or more", window.grace_ms))
    return wrong


AnyAggregation = op.Count | op.Reduce | op.Aggregate

REDUCE = "KSTREAM-REDUCE-"
AGGREGATE = "KSTREAM-AGGREGATE-"


def count(builder: Builder, on: GroupedStream, call: op.Count) -> Handle:
    _skip_index_of_unnamed_count(builder, call)
    return _aggregate_plain(builder, on, call, AGGREGATE)


def reduce(builder: Builder, on: GroupedStream, call: op.Reduce) -> Handle:
    return _aggregate_plain(builder, on, call, REDUCE)


def aggregate(builder: Builder, on: GroupedStream, call: op.Aggregate) -> Handle:
    return _aggregate_plain(builder, on, call, AGGREGATE)


def windowed_count(builder: Builder, on: WindowedStream, call: op.Count) -> Handle:
    if not isinstance(on.window, SlidingWindow):
        _skip_index_of_unnamed_count(builder, call)
    return _aggregate_windowed(builder, on, call, AGGREGATE)


def windowed_reduce(builder: Builder, on: WindowedStream, call: op.Reduce) -> Handle:
    return _aggregate_windowed(builder, on, call, REDUCE)


def windowed_aggregate(builder: Builder, on: WindowedStream, call: op.Aggregate) -> Handle:
    return _aggregate_windowed(builder, on, call, AGGREGATE)


def _skip_index_of_unnamed_count(builder: Builder, call: op.Count) -> None:
    """Skip an index: `count(Materialized)` without a name takes a store index twice (facts 1.4)."""
    if call.materialized is not None and call.materialized.store_name is None:
        builder.names.skip_index()


def _aggregate_plain(builder: Builder, on: GroupedStream, call: AnyAggregation, prefix: str) -> Table:
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = aggregate_formats(on.record, call)
    store = key_value_store(builder.store_name(call.materialized, prefix), call.materialized, record)
    name = builder.named(call.name, prefix)
    parent, sources = _find_parent(builder, on, call, store)
    old_values = OldValues()
    behavior = StreamAggregate(store.name, functions_of(call))
    declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
    node = builder.add(name, declares, parent, versioned=is_versioned(call.materialized))
    return Table(name, sources, node, View.from_store(store.name), old_values, record)


def _aggregate_windowed(builder: Builder, on: WindowedStream, call: AnyAggregation, prefix: str) -> Table:
    store_name = builder.store_name(call.materialized, prefix)
    name = builder.named(call.name, prefix)
    retention = windowed_retention_ms(builder, call.materialized, on.window, store_name)
    record = aggregate_formats(on.grouped.record, call)
    store = windowed_store(
        store_name, call.materialized, on.window, retention, record, emit_on_close=on.emit_on_close
    )
    parent, sources = _find_parent(builder, on.grouped, call, store)
    grace = close_grace_ms(on.window)
    old_values = OldValues()
    behavior = StreamAggregate(store.name, functions_of(call), on.window, emit_on_close=on.emit_on_close)
    declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
    node = builder.add(name, declares, parent, versioned=False, grace_ms=grace)
    return Table(
        name, sources, node, View.from_store(store.name), old_values, with_windowed_key(record, on.window)
    )


def aggregate_formats(record: RecordFormat, call: AnyAggregation) -> RecordFormat:
    """Return the formats of the store, as of a result without windows; a count is a long."""
    return with_store_serdes(
        with_long_value(record) if isinstance(call, op.Count) else record, call.materialized
    )


def functions_of(call: AnyAggregation) -> Functions:
    """Return the expressions of a call."""
    if isinstance(call, op.Count):
        return Functions(AggregationKind.COUNT)
    if isinstance(call, op.Reduce):
        return Functions(AggregationKind.REDUCE, add=call.add, remove=call.remove)
    return Functions(
        AggregationKind.AGGREGATE, init=call.init, add=call.add, remove=call.remove, merge=call.merge
    )


def _find_parent(
    builder: Builder, on: GroupedStream, call: AnyAggregation, store: Store
) -> tuple[GraphNode, frozenset[str]]:
    """Return the aggregation's parent and sources; aggregations of a named group share one repartition."""
    if not on.repartition_required:
        return on.node, on.sources
    named = call.materialized is not None and call.materialized.store_name is not None
    if on.group is None:
        made = builder.repartition(store.name, on.record, named_by_user=named)
        return builder.attach(made, on.node), frozenset({made.name})
    made = builder.repartition(on.group, on.record, named_by_user=True)
    shared = builder.group_repartitions.setdefault(on, made)
    builder.note_shared_repartition(made.name, shared, _OWN_GROUP)
    return builder.attach(shared, on.node), frozenset({made.name})


_OWN_GROUP = "Group again for each aggregation, with a `name` that no other group has."
TABLE_AGGREGATE = "KTABLE-AGGREGATE-"
TABLE_REDUCE = "KTABLE-REDUCE-"


def table_count(builder: Builder, on: GroupedTable, call: op.Count) -> Handle:
    return _aggregate_repartitioned(builder, on, call, TABLE_AGGREGATE)


def table_reduce(builder: Builder, on: GroupedTable, call: op.Reduce) -> Handle:
    return _aggregate_repartitioned(builder, on, call, TABLE_REDUCE)


def table_aggregate(builder: Builder, on: GroupedTable, call: op.Aggregate) -> Handle:
    return _aggregate_repartitioned(builder, on, call, TABLE_AGGREGATE)


def _aggregate_repartitioned(
    builder: Builder, on: GroupedTable, call: op.Count | op.Reduce | op.Aggregate, prefix: str
) -> Table:
    """Add the repartition and the aggregation (`KGroupedTableImpl#doAggregate`).

    The store has the prefix of `aggregate`, also for `reduce`. The topic's suffix is always appended.
    """
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = aggregate_formats(on.record, call)
    store = key_value_store(builder.store_name(call.materialized, TABLE_AGGREGATE), call.materialized, record)
    sink = builder.suffixed(call.name, "-sink", "KSTREAM-SINK-")
    source = builder.suffixed(call.name, "-source", "KSTREAM-SOURCE-")
    name = builder.named(call.name, prefix)
    topic = (on.group if on.group is not None else store.name) + REPARTITION_SUFFIX
    repartition = GraphNode(
        source,
        RepartitionDeclaration(topic, sink, source, record=on.record, carries_changes=True),
        builder.at,
    )
    if on.group is not None:
        repartition = builder.group_repartitions.setdefault(on, repartition)
    builder.attach(repartition, on.node)
    builder.note_shared_repartition(source, repartition, _OWN_GROUP)
    old_values = OldValues()
    behavior = TableAggregate(store.name, functions_of(call))
    declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
    node = builder.add(name, declares, repartition, versioned=is_versioned(call.materialized))
    return Table(name, frozenset({source}), node, View.from_store(store.name), old_values, record)
