"""Calls on a `KStream` except grouping, joins and repartitions."""

from collections.abc import Callable, Mapping

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_builders
from headwater.compiler.dsl.declarations import ProcessorDeclaration, SinkDeclaration
from headwater.compiler.dsl.formats import with_new_key, with_serdes
from headwater.compiler.dsl.handles import Branches, Handle, Nothing, Stream
from headwater.compiler.dsl.messages import unsupported_call
from headwater.compiler.dsl.stores import built_store
from headwater.model import behaviors as does
from headwater.model import operators as op
from headwater.model.operators import TransformKind

_PREFIXES = {
    TransformKind.FILTER: "KSTREAM-FILTER-",
    TransformKind.FILTER_NOT: "KSTREAM-FILTER-",
    TransformKind.MAP: "KSTREAM-MAP-",
    TransformKind.MAP_VALUES: "KSTREAM-MAPVALUES-",
    TransformKind.FLAT_MAP: "KSTREAM-FLATMAP-",
    TransformKind.FLAT_MAP_VALUES: "KSTREAM-FLATMAPVALUES-",
    TransformKind.SELECT_KEY: "KSTREAM-KEY-SELECT-",
    TransformKind.PEEK: "KSTREAM-PEEK-",
    TransformKind.FOREACH: "KSTREAM-FOREACH-",
    TransformKind.PRINT: "KSTREAM-PRINTER-",
}
_CHANGE_KEY = frozenset({TransformKind.MAP, TransformKind.FLAT_MAP, TransformKind.SELECT_KEY})
_CHANGE_VALUE = frozenset({TransformKind.MAP_VALUES, TransformKind.FLAT_MAP_VALUES})
_END = frozenset({TransformKind.FOREACH, TransformKind.PRINT})


def transform(builder: Builder, on: Stream, call: op.Transform) -> Handle:
    """Make a call with one function and no state.

    `map`, `flatMap` and `selectKey` may change the key, so a repartition is required after them.
    """
    if call.materialized is not None:
        return builder.reject(
            unsupported_call(
                f"`{call.kind.value}` of a stream has no store.",
                found="materialized",
                at=builder.at,
                fix="Remove `materialized`, or call `toTable` first.",
            )
        )
    changes_key = call.kind in _CHANGE_KEY
    name = builder.named(call.name, _PREFIXES[call.kind])
    node = builder.add(
        name,
        ProcessorDeclaration(name, behavior=_BEHAVIORS[call.kind](call)),
        on.node,
        changes_key=changes_key,
        changes_value=call.kind in _CHANGE_VALUE,
    )
    if call.kind in _END:
        return Nothing(call.kind.value)
    record = with_new_key(on.record, call.serdes) if changes_key else with_serdes(on.record, call.serdes)
    return Stream(name, on.sources, node, on.repartition_required or changes_key, record)


_BEHAVIORS: Mapping[TransformKind, Callable[[op.Transform], does.Behavior]] = {
    TransformKind.FILTER: lambda call: does.Filter(call.where),
    TransformKind.FILTER_NOT: lambda call: does.Filter(call.where, negate=True),
    TransformKind.MAP: lambda call: does.MapRecord(call.key, call.value),
    TransformKind.MAP_VALUES: lambda call: does.MapValues(call.value),
    TransformKind.FLAT_MAP: lambda call: does.FlatMap(call.each),
    TransformKind.FLAT_MAP_VALUES: lambda call: does.FlatMapValues(call.each),
    TransformKind.SELECT_KEY: lambda call: does.MapRecord(call.key, keeps_value=True),
    TransformKind.PEEK: lambda call: does.Peek("peek", call.each),
    TransformKind.FOREACH: lambda call: does.Peek("foreach", call.each),
    TransformKind.PRINT: lambda call: does.Peek("print", call.each),
}


def process(builder: Builder, on: Stream, call: op.Process) -> Handle:
    """`KStream#process`: the key may change, so a repartition is required."""
    name = call.name if call.name is not None else builder.names.processor("KSTREAM-PROCESSOR-")
    fixed = builder.config.process_changes_key
    check_builders(builder, call.connected)
    stores = tuple(map(built_store, call.connected))
    node = builder.add(
        name,
        ProcessorDeclaration(name, stores, call.stores, behavior=_runs_processor(call)),
        on.node,
        changes_key=fixed,
        changes_value=fixed,
    )
    return Stream(
        name, on.sources, node, repartition_required=True, record=with_new_key(on.record, call.serdes)
    )


def _runs_processor(call: op.Process | op.ProcessValues) -> does.RunProcessor:
    stores = (*(store.name for store in call.connected), *call.stores)
    return does.RunProcessor(call.processor_class, stores, values_only=isinstance(call, op.ProcessValues))


def process_values(builder: Builder, on: Stream, call: op.ProcessValues) -> Handle:
    """`KStream#processValues`: the key does not change."""
    name = call.name if call.name is not None else builder.names.processor("KSTREAM-PROCESSVALUES-")
    check_builders(builder, call.connected)
    stores = tuple(map(built_store, call.connected))
    node = builder.add(
        name,
        ProcessorDeclaration(name, stores, call.stores, behavior=_runs_processor(call)),
        on.node,
        changes_value=builder.config.process_changes_key,
    )
    return Stream(name, on.sources, node, on.repartition_required, with_serdes(on.record, call.serdes))


def merge(builder: Builder, on: Stream, call: op.Merge, other: Handle) -> Handle:
    """`KStream#merge`: a repartition is required if it is for either side; nothing is co-partitioned."""
    if not isinstance(other, Stream):
        return builder.reject(
            unsupported_call(
                f"`merge` needs another stream, and `{call.other}` is not a stream.",
                found=call.other,
                at=builder.at,
                fix="Name a stream in `with` (a table becomes one by `toStream`).",
            )
        )
    name = builder.named(call.name, "KSTREAM-MERGE-")
    node = builder.add(
        name, ProcessorDeclaration(name, behavior=does.PassThrough()), on.node, other.node, is_merge=True
    )
    return Stream(
        name,
        on.sources | other.sources,
        node,
        on.repartition_required or other.repartition_required,
        on.record,
    )


def to(builder: Builder, on: Stream, call: op.To) -> Handle:
    name = builder.named(call.name, "KSTREAM-SINK-")
    writes = does.SinkSettings(with_serdes(on.record, call.serdes), call.partitioner, call.topic_expression)
    builder.add(name, SinkDeclaration(call.topic, call.extractor, writes), on.node)
    return Nothing("to")


def split(builder: Builder, on: Stream, call: op.Split, then: Callable[[op.Branch, Stream], None]) -> Handle:
    """`KStream#split`: `then` makes the calls of a branch before the next branch is added."""
    splitter = builder.named(call.name, "KSTREAM-BRANCH-")
    positions = enumerate(call.branches, start=1)
    branches = [*positions, *([(0, call.default)] if call.default is not None else [])]
    names = [
        splitter + (branch.name if branch.name is not None else str(position))
        for position, branch in branches
    ]
    behavior = does.Branch(
        tuple(branch.where for branch in call.branches),
        tuple(names[: len(call.branches)]),
        names[-1] if call.default is not None else None,
    )
    node = builder.add(splitter, ProcessorDeclaration(splitter, behavior=behavior), on.node)
    for name, (_, branch) in zip(names, branches, strict=True):
        builder.names.skip_index()
        child = builder.add(name, ProcessorDeclaration(name, behavior=does.PassThrough()), node)
        then(branch, Stream(name, on.sources, child, on.repartition_required, on.record))
    return Branches()
