"""Finds the operators of a document that do something else after an edit."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

import attrs

from headwater.model.behaviors import Aggregation, Behavior, SinkSettings, SourceSettings
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater.planner.edits.topologies import Topology
from headwater.planner.expression_text import normalize_expression

_INDEX = re.compile(r"\d{10,}")
DECLARED = frozenset(
    {
        *("where", "negate", "key", "value", "keeps_value", "each", "predicates", "foreign_key"),
        *("kind", "processor_class", "aggregation", "timestamp", "topic_expression", "partitioner"),
        *("window", "grace_ms", "emit_on_close", "until_window_closes", "wait_ms"),
        *("max_records", "max_bytes", "shut_down_when_full"),
    }
)
"""The fields of behaviors, and of the settings of sources and sinks, that users declare.

The others follow from the operators around, from stores, formats and the version of Kafka Streams.
"""


def edited_operators(before: Topology, after: Topology) -> tuple[str, ...]:
    """Return the nodes that do something else afterwards, by their names afterwards.

    They are compared with the nodes of the same name. If numbers of generated names have shifted, nodes of
    the same kind that do the same are omitted, and the others are compared in their order.
    """
    old, new = _by_kind(before), _by_kind(after)
    edited = {name for kind in old.keys() & new.keys() for name in _edited_of_one_kind(old[kind], new[kind])}
    return tuple(node.name for node in after.nodes.nodes if node.name in edited)


def _edited_of_one_kind(old: Mapping[str, str], new: Mapping[str, str]) -> Iterator[str]:
    if old.keys() == new.keys():
        yield from (name for name, does in new.items() if old[name] != does)
        return
    unchanged = Counter(old.values()) & Counter(new.values())
    edited = len(old) - unchanged.total()
    for name, does in new.items():
        if unchanged[does]:
            unchanged[does] -= 1
        elif edited:
            edited -= 1
            yield name


def _by_kind(topology: Topology) -> Mapping[str, Mapping[str, str]]:
    """Return name without a generated number → node → what it does; only nodes with a known behavior."""
    internal = {topic.name for topic in topology.nodes.repartition_topics}
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for node in topology.nodes.nodes:
        does = _does(node, internal)
        if does is not None:
            found[_INDEX.sub("#", node.name)][node.name] = repr(does)
    return found


def _does(node: Node, internal: set[str]) -> object | None:
    """Return what users declare of a node, None if its behavior is not known."""
    match node:
        case ProcessorNode(behavior=declares) if declares is not None:
            return _declared(declares)
        case SourceNode(reads=declares) if declares is not None:
            return _declared(declares)
        case SinkNode(writes=declares) if declares is not None:
            return node.topic not in internal and node.topic, _declared(declares)
        case _:
            return None


def _declared(settings: Behavior | SourceSettings | SinkSettings) -> tuple[object, ...]:
    return type(settings).__name__, {
        name: value for name, value in _fields(settings).items() if name in DECLARED
    }


def _fields(value: attrs.AttrsInstance) -> dict[str, object]:
    return {name: _normalized(each) for name, each in attrs.asdict(value, recurse=False).items()}


def _normalized(value: object) -> object:
    """Return a declared value without white space that means nothing in its expressions."""
    if isinstance(value, str):
        return normalize_expression(value)
    if isinstance(value, tuple):
        return tuple(map(_normalized, value))
    if isinstance(value, Aggregation):
        return _fields(value)
    return value
