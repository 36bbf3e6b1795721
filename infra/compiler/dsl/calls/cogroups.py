"""`cogroup` and the aggregations of cogrouped streams."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.grouping import check_window
from infra.compiler.dsl.calls.materialization import accepts_supplier, windowed_retention_ms
from infra.compiler.dsl.declarations import WritesProcessor
from infra.compiler.dsl.graph import GraphNode
from infra.compiler.dsl.handles import (
    CogroupedStream,
    GroupedStream,
    Handle,
    Table,
    View,
    WindowedCogroupedStream,
)
from infra.compiler.dsl.refusals import lint, unfit
from infra.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    Store,
    close_grace_ms,
    is_versioned,
    key_value_store,
    windowed_store,
)
from infra.model import operators as op
from infra.model.problems import Problem, ProblemCode

AGGREGATE = "COGROUPKSTREAM-AGGREGATE-"
MERGE = "COGROUPKSTREAM-MERGE-"


def cogroup(
    builder: Builder, on: GroupedStream | CogroupedStream, call: op.Cogroup, other: Handle | None
) -> Handle:
    if isinstance(on, GroupedStream):
        if call.other is not None:
            return builder.refuse(
                _wrong_form(builder, "The first `cogroup` starts with its own input alone", call)
            )
        cogrouped = CogroupedStream(on)
        builder.cogroup_inputs[cogrouped] = {on: None}
        return cogrouped
    if not isinstance(other, GroupedStream):
        return builder.refuse(_wrong_form(builder, "A cogrouped stream takes one more grouped stream", call))
    builder.cogroup_inputs[on].setdefault(other, None)
    return on


def _wrong_form(builder: Builder, rule: str, call: op.Cogroup) -> Problem:
    return unfit(
        f"{rule}.",
        expected="`cogroup` of a grouped stream, then `cogroup: {with: grouped}` for each further one",
        found=f"with: {call.other}" if call.other is not None else "no `with`",
        at=builder.at,
        fix="Call `cogroup` on the first grouped stream without `with`, then once for each other one with it.",
    )


def windowed_by(builder: Builder, on: CogroupedStream, call: op.WindowedBy) -> Handle:
    check_window(builder, call.window)
    if call.emit_on_close:
        builder.refuse(
            unfit(
                "A cogrouped stream has no emit strategy.",
                found="emit: onWindowClose",
                at=builder.at,
                fix="Remove `emit`; `suppress` the result until the window closes instead.",
            )
        )
    return WindowedCogroupedStream(on, call.window)


def aggregate(builder: Builder, on: CogroupedStream, call: op.Aggregate) -> Handle:
    accepts_supplier(builder, call.materialized, KEY_VALUE_KINDS, "aggregate")
    store = key_value_store(builder.store_name(call.materialized, AGGREGATE), call.materialized)
    return _table(builder, on, call, store, None)


def windowed_aggregate(builder: Builder, on: WindowedCogroupedStream, call: op.Aggregate) -> Handle:
    store_name = builder.store_name(call.materialized, AGGREGATE)
    retention = windowed_retention_ms(builder, call.materialized, on.window, store_name, "aggregate")
    store = windowed_store(store_name, call.materialized, retention)
    return _table(builder, on.cogrouped, call, store, close_grace_ms(on.window))


def _table(
    builder: Builder, on: CogroupedStream, call: op.Aggregate, store: Store, grace_ms: int | None
) -> Table:
    """`CogroupedStreamAggregateBuilder#build`."""
    inputs = builder.cogroup_inputs[on]
    _repartition(builder, inputs, call, store)
    versioned = is_versioned(call.materialized) if grace_ms is None else None
    processors = []
    for position, parent in enumerate(inputs.values()):
        assert parent is not None  # noqa: S101 - `_repartition` has just set all of them
        name = builder.suffixed(call.name, f"-cogroup-agg-{position}", AGGREGATE)
        processors.append(
            builder.add(name, WritesProcessor(name, (store,)), parent, versioned=versioned, grace_ms=grace_ms)
        )
    merge = builder.suffixed(call.name, "-cogroup-merge", MERGE)
    node = builder.add(merge, WritesProcessor(merge), *processors)
    read = {source for parent in inputs for source in parent.sources}
    builder.lose(merge, f"{merge} is the result of a cogroup, whose group is not handed on", frozenset(read))
    return Table(merge, frozenset({merge}), node, View((store.name,)))


def _repartition(
    builder: Builder, inputs: dict[GroupedStream, GraphNode | None], call: op.Aggregate, store: Store
) -> None:
    """`processRepartitions`: each input that changed its key; the group names the sources before them all the same."""
    is_named = call.materialized is not None and call.materialized.store_name is not None
    for grouped, parent in inputs.items():
        if not grouped.rekeyed:
            inputs[grouped] = grouped.node
            continue
        made = builder.repartition(
            grouped.group if grouped.group is not None else store.name,
            named_by_user=grouped.group is not None or is_named,
        )
        if parent is None:
            inputs[grouped] = builder.attach(made, grouped.node)
    group = builder.copartition(source for grouped in inputs for source in grouped.sources)
    rekeyed = [grouped.name for grouped in inputs if grouped.rekeyed]
    if rekeyed and len(group) > 1:
        builder.refuse(
            lint(
                ProblemCode.COGROUP_COPARTITIONS_SOURCES,
                "`cogroup` demands equal partition counts of topics that are repartitioned before it.",
                node=store.name,
                expected="equal counts of the repartition topics",
                found="equal counts of the sources: " + ", ".join(sorted(group)),
                why="Kafka Streams registers the sources from before the repartition as co-partitioned. With unequal counts "
                "the application fails; under the streams protocol it cannot start at all.",
                at=builder.at,
                fix="Call `repartition` on the inputs before grouping them, so that their own topics form the group.",
            )
        )
