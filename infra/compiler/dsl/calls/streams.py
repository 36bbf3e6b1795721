"""Calls on a `KStream` that neither group, join nor repartition it."""

from collections.abc import Callable

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.materialization import check_builders
from infra.compiler.dsl.declarations import WritesProcessor, WritesSink
from infra.compiler.dsl.handles import Branches, Handle, Nothing, Stream
from infra.compiler.dsl.refusals import unfit
from infra.compiler.dsl.stores import built_store
from infra.model import operators as op
from infra.model.operators import TransformKind

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
    if call.materialized is not None:
        return builder.refuse(
            unfit(
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
        WritesProcessor(name),
        on.node,
        changes_key=changes_key,
        changes_value=call.kind in _CHANGE_VALUE,
    )
    if call.kind in _END:
        return Nothing(call.kind.value)
    return Stream(name, on.sources, node, on.rekeyed or changes_key)


def process(builder: Builder, on: Stream, call: op.Process) -> Handle:
    name = call.name if call.name is not None else builder.names.processor("KSTREAM-PROCESSOR-")
    fixed = builder.config.process_changes_key
    check_builders(builder, call.connected)
    stores = tuple(map(built_store, call.connected))
    node = builder.add(
        name,
        WritesProcessor(name, stores, call.stores),
        on.node,
        changes_key=fixed,
        changes_value=fixed,
    )
    return Stream(name, on.sources, node, rekeyed=True)


def process_values(builder: Builder, on: Stream, call: op.ProcessValues) -> Handle:
    name = call.name if call.name is not None else builder.names.processor("KSTREAM-PROCESSVALUES-")
    check_builders(builder, call.connected)
    stores = tuple(map(built_store, call.connected))
    node = builder.add(
        name,
        WritesProcessor(name, stores, call.stores),
        on.node,
        changes_value=builder.config.process_changes_key,
    )
    return Stream(name, on.sources, node, on.rekeyed)


def merge(builder: Builder, on: Stream, call: op.Merge, other: Handle) -> Handle:
    if not isinstance(other, Stream):
        return builder.refuse(
            unfit(
                f"`merge` joins a stream with another stream, `{call.other}` is none.",
                found=call.other,
                at=builder.at,
                fix="Name a stream in `with` (a table becomes one by `toStream`).",
            )
        )
    name = builder.named(call.name, "KSTREAM-MERGE-")
    node = builder.add(name, WritesProcessor(name), on.node, other.node, is_merge=True)
    return Stream(name, on.sources | other.sources, node, on.rekeyed or other.rekeyed)


def to(builder: Builder, on: Stream, call: op.To) -> Handle:
    name = builder.named(call.name, "KSTREAM-SINK-")
    builder.add(name, WritesSink(call.topic, call.extractor), on.node)
    return Nothing("to")


def split(builder: Builder, on: Stream, call: op.Split, then: Callable[[op.Branch, Stream], None]) -> Handle:
    """`then` makes a branch's own calls and registers its handle; it runs before the next branch is made."""
    splitter = builder.named(call.name, "KSTREAM-BRANCH-")
    node = builder.add(splitter, WritesProcessor(splitter), on.node)
    positions = enumerate(call.branches, start=1)
    branches = [*positions, *([(0, call.default)] if call.default is not None else [])]
    for position, branch in branches:
        name = splitter + (branch.name if branch.name is not None else str(position))
        builder.names.burn()
        child = builder.add(name, WritesProcessor(name), node)
        then(branch, Stream(name, on.sources, child, on.rekeyed))
    return Branches()
