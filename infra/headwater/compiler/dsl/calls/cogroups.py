"""`cogroup` and the aggregations of cogrouped streams."""

from headwater.compiler.dsl.builder import TABLE_OF_ITS_OWN, Builder
from headwater.compiler.dsl.calls.grouping import check_window
from headwater.compiler.dsl.calls.materialization import check_materialized, windowed_retention_ms
from headwater.compiler.dsl.declarations import OldValues, ProcessorDeclaration
from headwater.compiler.dsl.formats import with_store_serdes, with_windowed_key
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import (
    CogroupedStream,
    GroupedStream,
    Handle,
    Table,
    View,
    WindowedCogroupedStream,
)
from headwater.compiler.dsl.messages import unsupported_call
from headwater.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    Store,
    close_grace_ms,
    is_versioned,
    key_value_store,
    windowed_store,
)
from headwater.model import operators as op
from headwater.model.behaviors import Aggregation, AggregationKind, PassThrough, StreamAggregate
from headwater.model.formats import RecordFormat
from headwater.model.problems import Problem
from headwater.model.windows import Window

AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
MERGE = "COGROUPKSTREAM-MERGE-"


def cogroup(
    builder: Builder, on: GroupedStream | CogroupedStream, call: op.Cogroup, other: Handle | None
) -> Handle:
    if isinstance(on, GroupedStream):
        if call.other is not None:
            return builder.reject(_wrong_form("The first `cogroup` takes no other stream", call))
        cogrouped = CogroupedStream(on)
        builder.cogroup_inputs[cogrouped] = {on: call.value}
        builder.cogroup_repartitions[cogrouped] = {}
        return cogrouped
    if not isinstance(other, GroupedStream):
        return builder.reject(_wrong_form("A further `cogroup` takes one more grouped stream", call))
    builder.cogroup_inputs[on][other] = call.value
    return on


def _wrong_form(rule: str, call: op.Cogroup) -> Problem:
    return unsupported_call(
        f"{rule}.",
        expected="`cogroup` of a grouped stream, then `cogroup: {with: grouped}` for each further one",
        found=f"with: {call.other}" if call.other is not None else "no `with`",
        fix="Call `cogroup` on the first grouped stream without `with`, then with `with` for each "
        "further one.",
    )


def windowed_by(builder: Builder, on: CogroupedStream, call: op.WindowedBy) -> Handle:
    check_window(builder, call.window)
    if call.emit_on_close:
        builder.reject(
            unsupported_call(
                "A cogrouped stream has no emit strategy.",
                found="emit: onWindowClose",
                fix="Remove `emit`; `suppress` the result until the window closes instead.",
            )
        )
    return WindowedCogroupedStream(on, call.window)


def aggregate(builder: Builder, on: CogroupedStream, call: op.Aggregate) -> Handle:
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = _record_format(on, call)
    store = key_value_store(builder.store_name(call.materialized, AGGREGATE), call.materialized, record)
    return _add_table(builder, on, call, store, versioned=is_versioned(call.materialized))


def windowed_aggregate(builder: Builder, on: WindowedCogroupedStream, call: op.Aggregate) -> Handle:
    store_name = builder.store_name(call.materialized, AGGREGATE)
    retention = windowed_retention_ms(builder, call.materialized, on.window, store_name)
    record = _record_format(on.cogrouped, call)
    store = windowed_store(store_name, call.materialized, on.window, retention, record)
    return _add_table(builder, on.cogrouped, call, store, on.window)


def _record_format(on: CogroupedStream, call: op.Aggregate) -> RecordFormat:
    return with_store_serdes(on.first.record, call.materialized)


def _add_table(
    builder: Builder,
    on: CogroupedStream,
    call: op.Aggregate,
    store: Store,
    window: Window | None = None,
    *,
    versioned: bool | None = None,
) -> Table:
    """Add a processor for each input, and their merge (`CogroupedStreamAggregateBuilder#build`)."""
    parents = _find_parents(builder, on, call, store)
    grace_ms = close_grace_ms(window) if window is not None else None
    old_values = OldValues()
    processors = []
    for position, (grouped, parent) in enumerate(parents.items()):
        name = builder.suffixed(call.name, f"-cogroup-agg-{position}", AGGREGATE)
        add = builder.cogroup_inputs[on][grouped]
        functions = Aggregation(AggregationKind.AGGREGATE, init=call.init, add=add, merge=call.merge)
        behavior = StreamAggregate(store.name, functions, window)
        declares = ProcessorDeclaration(name, (store,), behavior=behavior, old_values=old_values)
        processors.append(builder.add(name, declares, parent, versioned=versioned, grace_ms=grace_ms))
    merge = builder.suffixed(call.name, "-cogroup-merge", MERGE)
    node = builder.add(merge, ProcessorDeclaration(merge, behavior=PassThrough()), *processors)
    read = [
        {parent.name} if grouped.repartition_required else grouped.sources
        for grouped, parent in parents.items()
    ]
    builder.note_non_source(
        merge,
        f"{merge} is the result of a cogroup, not a source",
        frozenset().union(*read),
        TABLE_OF_ITS_OWN,
    )
    record = _record_format(on, call)
    result = with_windowed_key(record, window) if window is not None else record
    return Table(merge, frozenset({merge}), node, View.from_store(store.name), old_values, result)


def _find_parents(
    builder: Builder, on: CogroupedStream, call: op.Aggregate, store: Store
) -> dict[GroupedStream, GraphNode]:
    """Return input → parent: its repartition if one is required, shared with further aggregations."""
    inputs = builder.cogroup_inputs[on]
    named = call.materialized is not None and call.materialized.store_name is not None
    for grouped in inputs:
        if not grouped.repartition_required:
            continue
        prefix = grouped.group if grouped.group is not None else store.name
        made = builder.repartition(prefix, grouped.record, named_by_user=grouped.group is not None or named)
        if grouped not in builder.cogroup_repartitions[on]:
            builder.cogroup_repartitions[on][grouped] = builder.attach(made, grouped.node)
    group = builder.copartition(source for grouped in inputs for source in grouped.sources)
    if len(group) > 1 and any(grouped.repartition_required for grouped in inputs):
        builder.cogroups_of_sources.append((store.name, group, builder.at))
    repartitions = builder.cogroup_repartitions[on]
    return {grouped: repartitions.get(grouped, grouped.node) for grouped in inputs}
