"""The formats of a topology: the application's defaults, formats of topics and stores, formats at nodes."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, Literal

import attrs

from headwater.model import behaviors as does
from headwater.model.behaviors import AggregationKind, Behavior
from headwater.model.formats import DEFAULT_FORMAT, Format, RecordFormat
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from headwater.model.problems import Location
from headwater_spark.engine.serdes import is_schema_format, schema_key, schema_kind, schema_subject

Role = Literal["key", "value"]

_KEYS: Mapping[Role, str] = {"key": "default.key.serde", "value": "default.value.serde"}
_CLASSES = {
    "StringSerde": "string",
    "LongSerde": "long",
    "IntegerSerde": "integer",
    "ShortSerde": "short",
    "DoubleSerde": "double",
    "FloatSerde": "float",
    "BooleanSerde": "boolean",
    "UUIDSerde": "uuid",
    "ByteArraySerde": "bytes",
    "BytesSerde": "bytes",
    "ByteBufferSerde": "bytes",
}
"""Nested classes of `org.apache.kafka.common.serialization.Serdes`."""


@attrs.frozen
class Defaults:
    """The formats of keys and values for which the document has none."""

    key: str = "string"
    value: str = "string"

    @classmethod
    def from_config(cls, config: Mapping[str, str]) -> "Defaults":
        """Read `default.key.serde` and `default.value.serde`: names of formats, or classes of `Serdes`."""
        return cls(_format_name(config.get(_KEYS["key"])), _format_name(config.get(_KEYS["value"])))

    def resolve(self, wanted: Format | None, role: Role) -> Format:
        name = self.key if role == "key" else self.value
        if wanted is None:
            return Format(name)
        return attrs.evolve(wanted, name=name) if wanted.name == DEFAULT_FORMAT else wanted


def _format_name(configured: str | None) -> str:
    if configured is None:
        return "string"
    name = configured.strip()
    return _CLASSES.get(name.removeprefix("org.apache.kafka.common.serialization.Serdes").lstrip("$."), name)


@attrs.frozen
class UsedFormat:
    """A format of a node or store; `what` describes its use, for messages."""

    node: str
    what: str
    format: Format
    at: Location | None


def used_formats(topology: NodeTopology, defaults: Defaults) -> Iterator[UsedFormat]:
    """Yield every format in which records are read, written or stored."""
    used = {store for node in topology.nodes if isinstance(node, ProcessorNode) for store in node.stores}
    for node in topology.nodes:
        if isinstance(node, SourceNode) and node.reads is not None:
            second: Role = "key" if node.reads.foreign_key == "subscription" else "value"
            yield from _key_and_value(_Use(node.name, "read", node.at), node.reads.format, defaults, second)
        elif isinstance(node, SinkNode) and node.writes is not None:
            second = "key" if node.writes.foreign_key == "subscription" else "value"
            yield from _key_and_value(
                _Use(node.name, "written", node.at), node.writes.format, defaults, second
            )
    for store in topology.stores:
        if store.keeps is None or store.name not in used:
            continue
        use = _Use(store.name, "stored", store.at)
        second = "key" if store.keeps.kind == "subscription" else "value"
        for record in (store.keeps.format, store.keeps.right):
            if record is not None:
                yield from _key_and_value(use, record, defaults, second)


@attrs.frozen
class _Use:
    node: str
    does: str
    at: Location | None


def _key_and_value(use: _Use, record: RecordFormat, defaults: Defaults, second: Role) -> Iterator[UsedFormat]:
    """Yield the formats of key and value; the `second` role is "key" in subscriptions, too."""
    for role, wanted, default in (("key", record.key, "key"), (second, record.value, second)):
        format_ = defaults.resolve(wanted, "key" if default == "key" else "value")
        yield UsedFormat(use.node, f"{role}s are {use.does}", format_, use.at)


def schema_files(topology: NodeTopology, config: Mapping[str, str]) -> Mapping[str, str]:
    """Return the schema files that formats name, relative to the document: file → `serdes.schema_kind`."""
    names = sorted(filter(is_schema_format, _format_names(topology, config)))
    return {schema_key(name): schema_kind(name) for name in names}


def registered_formats(topology: NodeTopology, config: Mapping[str, str]) -> tuple[str, ...]:
    """Return the formats that name subjects of a schema registry."""
    return tuple(sorted(name for name in _format_names(topology, config) if schema_subject(name) is not None))


def _format_names(topology: NodeTopology, config: Mapping[str, str]) -> frozenset[str]:
    return frozenset(each.format.name for each in used_formats(topology, Defaults.from_config(config)))


@attrs.frozen
class NodeFormats:
    """The formats of keys and values at a node, unchanged since they were read; None = unknown."""

    key: str | None = None
    value: str | None = None


_UNKNOWN: Final = NodeFormats()
_PASSES_UNCHANGED: Final = (
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
_NEW_VALUE: Final = (does.MapValues, does.FlatMapValues, does.TableMapValues)


def formats_by_node(topology: NodeTopology, defaults: Defaults) -> Mapping[str, NodeFormats]:
    """Return the formats by node; for a source node, the formats that it reads."""
    incoming: dict[str, NodeFormats] = {}
    outgoing: dict[str, NodeFormats] = {}
    for node in topology.nodes:  # parents before children
        if isinstance(node, SourceNode):
            incoming[node.name] = outgoing[node.name] = _source_formats(node, defaults)
            continue
        incoming[node.name] = _common_formats(outgoing.get(parent, _UNKNOWN) for parent in node.parents)
        if isinstance(node, ProcessorNode):
            outgoing[node.name] = _formats_after(incoming[node.name], node.behavior)
    return MappingProxyType(incoming)


def _source_formats(node: SourceNode, defaults: Defaults) -> NodeFormats:
    reads = node.reads
    if reads is None or reads.foreign_key is not None:
        return _UNKNOWN

    def name(wanted: Format | None, role: Role) -> str | None:
        settled = defaults.resolve(wanted, role)
        return settled.name if settled.window is None else None

    return NodeFormats(name(reads.format.key, "key"), name(reads.format.value, "value"))


def _common_formats(parents: Iterable[NodeFormats]) -> NodeFormats:
    known = frozenset(parents)
    keys, values = {each.key for each in known}, {each.value for each in known}
    return NodeFormats(*(names.pop() if len(names) == 1 else None for names in (keys, values)))


def _formats_after(incoming: NodeFormats, behavior: Behavior | None) -> NodeFormats:
    if isinstance(behavior, _PASSES_UNCHANGED):
        return incoming
    if isinstance(behavior, _NEW_VALUE):
        return NodeFormats(key=incoming.key)
    if isinstance(behavior, does.MapRecord) and behavior.keeps_value:
        return NodeFormats(value=incoming.value)
    if isinstance(behavior, does.StreamAggregate):
        counts = behavior.aggregation.kind is AggregationKind.COUNT
        return NodeFormats(incoming.key if behavior.window is None else None, "long" if counts else None)
    return _UNKNOWN
