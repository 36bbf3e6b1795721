"""The formats of a topology: the application's defaults, and which are used where."""

from collections.abc import Iterator, Mapping
from typing import Literal

import attrs

from infra.model.behaviors import DEFAULT_FORMAT, Format, RecordFormat
from infra.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode
from infra.model.problems import Location
from spark_jobs.runtime.engine.serdes import is_schema_format, subject

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
    """What a format that nobody told is."""

    key: str = "string"
    value: str = "string"

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "Defaults":
        """By `default.key.serde` and `default.value.serde`: a format's name, or a class of `Serdes`."""
        return cls(_named(config.get(_KEYS["key"])), _named(config.get(_KEYS["value"])))

    def settle(self, wanted: Format | None, role: Role) -> Format:
        name = self.key if role == "key" else self.value
        if wanted is None:
            return Format(name)
        return attrs.evolve(wanted, name=name) if wanted.name == DEFAULT_FORMAT else wanted


def _named(configured: str | None) -> str:
    if configured is None:
        return "string"
    name = configured.strip()
    return _CLASSES.get(name.removeprefix("org.apache.kafka.common.serialization.Serdes").lstrip("$."), name)


@attrs.frozen
class UsedFormat:
    """A format at a node or store; `what` says which of them, for texts."""

    node: str
    what: str
    format: Format
    at: Location | None


def used_formats(topology: NodeTopology, defaults: Defaults) -> Iterator[UsedFormat]:
    """Every format that records are read, written or kept in."""
    used = {store for node in topology.nodes if isinstance(node, ProcessorNode) for store in node.stores}
    for node in topology.nodes:
        if isinstance(node, SourceNode) and node.reads is not None:
            second: Role = "key" if node.reads.foreign_key == "subscription" else "value"
            yield from _both(_Place(node.name, "read", node.at), node.reads.format, defaults, second)
        elif isinstance(node, SinkNode) and node.writes is not None:
            second = "key" if node.writes.foreign_key == "subscription" else "value"
            yield from _both(_Place(node.name, "written", node.at), node.writes.format, defaults, second)
    for store in topology.stores:
        if store.keeps is None or store.name not in used:
            continue
        place = _Place(store.name, "kept", store.at)
        second = "key" if store.keeps.kind == "subscription" else "value"
        for record in (store.keeps.format, store.keeps.right):
            if record is not None:
                yield from _both(place, record, defaults, second)


@attrs.frozen
class _Place:
    node: str
    does: str
    at: Location | None


def _both(place: _Place, record: RecordFormat, defaults: Defaults, second: Role) -> Iterator[UsedFormat]:
    """`second` is the role of the format's value: in a subscription it is a key, too."""
    for role, wanted, default in (("key", record.key, "key"), (second, record.value, second)):
        format_ = defaults.settle(wanted, "key" if default == "key" else "value")
        yield UsedFormat(place.node, f"{role}s are {place.does}", format_, place.at)


def schema_files(topology: NodeTopology, config: Mapping[str, str]) -> tuple[str, ...]:
    """The schema files that formats name, relative to the document."""
    names = _format_names(topology, config)
    return tuple(sorted({name.partition(":")[2] for name in names if is_schema_format(name)}))


def registered_formats(topology: NodeTopology, config: Mapping[str, str]) -> tuple[str, ...]:
    """The formats that name subjects of a schema registry."""
    return tuple(sorted(name for name in _format_names(topology, config) if subject(name) is not None))


def _format_names(topology: NodeTopology, config: Mapping[str, str]) -> frozenset[str]:
    return frozenset(each.format.name for each in used_formats(topology, Defaults.of(config)))
