"""PURE. Which back end of the runtime evaluates a sub-topology (docs/adr/0012).

`native` where Spark SQL gives the same results: no state, one chain of nodes from one source to one sink,
expressions only, texts or bytes at both ends, the default partitioner. All else is for the tasks.
"""

from collections.abc import Sequence

from infra.model.behaviours import (
    DEFAULT_FORMAT,
    Filter,
    Format,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
    Reads,
    Writes,
)
from infra.model.compiled import Backend
from infra.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from infra.model.topology import Application

_FORMATS = ("string", "bytes")
_TASKS_ONLY = (
    "default.key.serde",
    "default.value.serde",
    "static.partitioner.class",
    "processing.exception.handler",
    "production.exception.handler",
)
"""What an application has to leave as it is: serdes of its own, partitioners, handlers that go on."""
_NOT_IN_SQL = "headers"


def backend(nodes: Sequence[Node], application: Application) -> Backend:
    """Return the back end of a sub-topology's nodes, in declaration order."""
    config = application.config
    is_plain = not any(key in config for key in _TASKS_ONLY)
    return Backend.NATIVE if is_plain and _is_chain(nodes) and all(map(_is_native, nodes)) else Backend.TASKS


def _is_chain(nodes: Sequence[Node]) -> bool:
    if len(nodes) < 2 or not isinstance(nodes[0], SourceNode) or not isinstance(nodes[-1], SinkNode):  # noqa: PLR2004
        return False
    names = [(node.name,) for node in nodes]
    parents = [node.parents for node in nodes[1:] if not isinstance(node, SourceNode)]
    return parents == names[:-1]


def _is_native(node: Node) -> bool:
    match node:
        case SourceNode(reads=Reads() as reads):
            is_simple = reads.timestamp is None and not reads.carries_changes and reads.foreign_key is None
            return is_simple and _is_text(reads.format.key) and _is_text(reads.format.value)
        case SinkNode(writes=Writes() as writes, topic=str()):
            is_simple = (
                writes.partitioner is None and not writes.carries_changes and writes.foreign_key is None
            )
            return is_simple and _is_text(writes.format.key) and _is_text(writes.format.value)
        case ProcessorNode(behaviour=behaviour, stores=()):
            return _is_expression(behaviour)
        case _:
            return False


def _is_expression(behaviour: object) -> bool:
    match behaviour:
        case PassThrough() | NonNullKeyFilter():
            return True
        case Filter(where=text):
            return _is_sql(text)
        case MapValues(value=text):
            return _is_sql(text)
        case MapRecord(key=key, value=value, keeps_value=keeps):
            return _is_sql(key) and (keeps or _is_sql(value))
        case _:
            return False


def _is_sql(text: str | None) -> bool:
    return text is not None and _NOT_IN_SQL not in text


def _is_text(format_: Format | None) -> bool:
    return format_ is None or (format_.window is None and format_.name in (*_FORMATS, DEFAULT_FORMAT))
