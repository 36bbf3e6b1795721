"""Calls on a `KStream` except grouping and joins, and the repartition of a stream before a join."""

from collections.abc import Callable, Mapping

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_builders, check_materialized
from headwater.compiler.dsl.calls.sources import lazy_store_of
from headwater.compiler.dsl.declarations import OldValues, ProcessorDeclaration, SinkDeclaration
from headwater.compiler.dsl.formats import with_new_key, with_serdes, with_store_serdes
from headwater.compiler.dsl.handles import Branches, Handle, Nothing, Stream, Table, View
from headwater.compiler.dsl.messages import ARGUMENT, topology_error, unsupported_call
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, built_store, is_versioned
from headwater.model import behaviors as does
from headwater.model import operators as op
from headwater.model.behaviors import TableSource
from headwater.model.formats import SinkSettings
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
    writes = SinkSettings(with_serdes(on.record, call.serdes), call.partitioner, call.topic_expression)
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


TO_TABLE = "KSTREAM-TOTABLE-"


def repartition(builder: Builder, on: Stream, call: op.Repartition) -> Handle:
    """`KStream#repartition`: each call has its own topic, which no optimization merges."""
    if call.partitions is not None and call.partitions < 1:
        builder.reject(
            topology_error(
                f"`repartition` has a partition count of {call.partitions}.",
                throws=ARGUMENT,
                when="when it starts",
                node=call.name,
                expected="at least 1",
                found=str(call.partitions),
                fix="Set `partitions` to 1 or more, or omit it: then the count follows the source topics.",
            )
        )
    prefix = call.name if call.name is not None else builder.names.processor("KSTREAM-REPARTITION-")
    record = with_serdes(on.record, call.serdes)
    node = builder.repartition(
        prefix,
        record,
        named_by_user=call.name is not None,
        partitions=call.partitions,
        explicit=True,
        partitioner=call.partitioner,
    )
    builder.attach(node, on.node)
    return Stream(node.name, frozenset({node.name}), node, record=record)


def to_table(builder: Builder, on: Stream, call: op.ToTable) -> Handle:
    """`KStream#toTable`: the stream is repartitioned first if its key may have changed."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    name = builder.named(call.name, TO_TABLE)
    store_name = builder.store_name(call.materialized, TO_TABLE)
    parent, sources = on.node, on.sources
    record = with_serdes(with_store_serdes(on.record, call.materialized), call.serdes)
    if on.repartition_required:
        parent = builder.repartition(name, record, named_by_user=call.name is not None)
        builder.attach(parent, on.node)
        sources = frozenset({parent.name})
    lazy_store = lazy_store_of(store_name, call, record)
    old_values = OldValues(source=lazy_store)
    declares = ProcessorDeclaration(
        name, lazy_store=lazy_store, behavior=TableSource(None), old_values=old_values
    )
    node = builder.add(name, declares, parent, versioned=is_versioned(call.materialized))
    return Table(name, sources, node, View.from_store(store_name, lazy_store), old_values, record)


def repartitioned_for_join(builder: Builder, stream: Stream, prefix: str, *, named_by_user: bool) -> Stream:
    """Return the repartitioned stream.

    Later joins of the same `KStream` object without a name share its last repartition.
    """
    made = builder.repartition(prefix, stream.record, named_by_user=named_by_user)
    kept = builder.stream_repartitions.get(stream)
    if kept is None or prefix != stream.name:
        kept = builder.attach(made, stream.node)
        builder.stream_repartitions[stream] = kept
    builder.note_shared_repartition(
        made.name,
        kept,
        "Give the join a `name` that no other join has, or call `repartition` once before both.",
    )
    return Stream(made.name, frozenset({made.name}), kept, record=stream.record)
