"""In which format keys and values come to a node, as long as nothing changed them since they were read."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import attrs

from infra.model import behaviors as does
from infra.model.behaviors import AggregationKind, Behavior, Format
from infra.model.nodes import NodeTopology, ProcessorNode, SourceNode
from spark_jobs.runtime.engine.program.formats import Defaults, Role


@attrs.frozen
class Arriving:
    """Names of formats; None = it may be anything."""

    key: str | None = None
    value: str | None = None


_UNKNOWN: Final = Arriving()
_UNCHANGED: Final = (
    does.PassThrough,
    does.Filter,
    does.Peek,
    does.Branch,
    does.NonNullKeyFilter,
    does.JoinWindowed,
    does.TableSource,
    does.TableFilter,
    does.TableToStream,
    does.TableSuppress,
)
_OTHER_VALUE: Final = (does.MapValues, does.FlatMapValues, does.TableMapValues)


def arriving(topology: NodeTopology, defaults: Defaults) -> Mapping[str, Arriving]:
    """By node; at a source node what it reads."""
    come: dict[str, Arriving] = {}
    gone: dict[str, Arriving] = {}
    for node in topology.nodes:  # parents stand before their children
        if isinstance(node, SourceNode):
            come[node.name] = gone[node.name] = _read(node, defaults)
            continue
        come[node.name] = _common(gone.get(parent, _UNKNOWN) for parent in node.parents)
        if isinstance(node, ProcessorNode):
            gone[node.name] = _left(come[node.name], node.behavior)
    return MappingProxyType(come)


def _read(node: SourceNode, defaults: Defaults) -> Arriving:
    reads = node.reads
    if reads is None or reads.foreign_key is not None:
        return _UNKNOWN

    def name(wanted: Format | None, role: Role) -> str | None:
        settled = defaults.settle(wanted, role)
        return settled.name if settled.window is None else None

    return Arriving(name(reads.format.key, "key"), name(reads.format.value, "value"))


def _common(parents: Iterable[Arriving]) -> Arriving:
    known = frozenset(parents)
    keys, values = {each.key for each in known}, {each.value for each in known}
    return Arriving(*(names.pop() if len(names) == 1 else None for names in (keys, values)))


def _left(come: Arriving, behavior: Behavior | None) -> Arriving:
    if isinstance(behavior, _UNCHANGED):
        return come
    if isinstance(behavior, _OTHER_VALUE):
        return Arriving(key=come.key)
    if isinstance(behavior, does.MapRecord) and behavior.keeps_value:
        return Arriving(value=come.value)
    if isinstance(behavior, does.StreamAggregate):
        counts = behavior.aggregation.kind is AggregationKind.COUNT
        return Arriving(come.key if behavior.window is None else None, "long" if counts else None)
    return _UNKNOWN
