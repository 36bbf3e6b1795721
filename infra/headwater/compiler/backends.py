"""The choice between Spark SQL and tasks for a sub-topology.

The back end `native` (ADR 12) is chosen where Spark SQL gives the same results: no state, one chain of nodes
from one source to one sink, only expressions of `native_sql`, strings or bytes at both ends, the default
partitioner. All other sub-topologies run as tasks.
"""

from collections.abc import Sequence

import attrs

from headwater.compiler.native_sql import Kind, kind_of
from headwater.model.behaviors import Filter, MapRecord, MapValues, NonNullKeyFilter, PassThrough
from headwater.model.compiled import Backend
from headwater.model.formats import (
    DEFAULT_FORMAT,
    Format,
    RecordFormat,
    SinkSettings,
    SourceSettings,
)
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater.model.topology import Application

_KINDS = {"string": Kind.TEXT, DEFAULT_FORMAT: Kind.TEXT, "bytes": Kind.BYTES}
"""Format name → kind; an application with default serdes of its own runs as tasks."""
_TASKS_ONLY = (
    "default.key.serde",
    "default.value.serde",
    "static.partitioner.class",
    "processing.exception.handler",
    "production.exception.handler",
)
"""Config keys that the native back end does not support: default serdes, partitioners, error handlers."""


@attrs.frozen
class _Kinds:
    """The kinds of key and value at one point of the chain."""

    key: Kind
    value: Kind

    def kind_of_text(self, text: str | None) -> Kind | None:
        return None if text is None else kind_of(text, self.key, self.value)


def choose_backend(nodes: Sequence[Node], application: Application) -> Backend:
    """Return the back end for `nodes`, the nodes of a sub-topology in declaration order."""
    is_plain = not any(key in application.config for key in _TASKS_ONLY)
    return Backend.NATIVE if is_plain and _is_chain(nodes) and _same_in_spark_sql(nodes) else Backend.TASKS


def _is_chain(nodes: Sequence[Node]) -> bool:
    if len(nodes) < 2 or not isinstance(nodes[0], SourceNode) or not isinstance(nodes[-1], SinkNode):  # noqa: PLR2004
        return False
    names = [(node.name,) for node in nodes]
    parents = [node.parents for node in nodes[1:] if not isinstance(node, SourceNode)]
    return parents == names[:-1]


def _same_in_spark_sql(nodes: Sequence[Node]) -> bool:
    source, *between, sink = nodes
    kinds = _read_kinds(source)
    for node in between:
        kinds = None if kinds is None else _kinds_after(node, kinds)
    return kinds is not None and kinds == _written_kinds(sink)


def _read_kinds(node: Node) -> _Kinds | None:
    match node:
        case SourceNode(
            reads=SourceSettings(timestamp=None, carries_changes=False, foreign_key=None) as reads
        ):
            return _kinds_of(reads.format)
        case _:
            return None


def _written_kinds(node: Node) -> _Kinds | None:
    match node:
        case SinkNode(
            topic=str(),
            writes=SinkSettings(partitioner=None, carries_changes=False, foreign_key=None) as writes,
        ):
            return _kinds_of(writes.format)
        case _:
            return None


def _kinds_of(format_: RecordFormat) -> _Kinds | None:
    key, value = _kind_of_format(format_.key), _kind_of_format(format_.value)
    return None if key is None or value is None else _Kinds(key, value)


def _kind_of_format(format_: Format | None) -> Kind | None:
    if format_ is None:
        return Kind.TEXT
    return None if format_.window is not None else _KINDS.get(format_.name)


def _kinds_after(node: Node, kinds: _Kinds) -> _Kinds | None:
    """Return the kinds of the node's output; None = not supported by the native back end."""
    if not isinstance(node, ProcessorNode) or node.stores:
        return None
    match node.behavior:
        case PassThrough() | NonNullKeyFilter():
            return kinds
        case Filter(where=text):
            return kinds if kinds.kind_of_text(text) is Kind.FLAG else None
        case MapValues(value=text):
            return _known_kinds(kinds.key, kinds.kind_of_text(text))
        case MapRecord(key=key, value=value, keeps_value=keeps):
            return _known_kinds(kinds.kind_of_text(key), kinds.value if keeps else kinds.kind_of_text(value))
        case _:
            return None


def _known_kinds(key: Kind | None, value: Kind | None) -> _Kinds | None:
    return None if key is None or value is None else _Kinds(key, value)
