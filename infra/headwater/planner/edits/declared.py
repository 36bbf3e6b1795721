"""What users declare of a node: each aspect with its text."""

from collections.abc import Iterator, Mapping

import attrs

from headwater.model.behaviors import Aggregation, Behavior, Branch
from headwater.model.formats import SinkSettings, SourceSettings
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater.model.windows import JoinWindow
from headwater.planner.document_settings import normalize_expression
from headwater.planner.edits.layouts import serde_name, windows_phrase
from headwater.planner.edits.topologies import Topology
from headwater.planner.phrases import duration_phrase

DECLARED: Mapping[str, str] = {
    "where": "condition",
    "negate": "negation",
    "key": "key",
    "value": "value",
    "keeps_value": "value",
    "each": "expression",
    "predicates": "conditions",
    "foreign_key": "foreign key",
    "kind": "kind",
    "processor_class": "class",
    "aggregation": "aggregation",
    "timestamp": "timestamp",
    "topic_expression": "topic expression",
    "partitioner": "partitioner",
    "window": "windows",
    "grace_ms": "grace period",
    "emit_on_close": "emit",
    "until_window_closes": "suppression until windows close",
    "wait_ms": "time limit",
    "max_records": "most records",
    "max_bytes": "most bytes",
    "shut_down_when_full": "shutdown when full",
}
"""The fields of behaviors, and of the settings of sources and sinks, that users declare → their aspect.

The others follow from the operators around, from stores, formats and the version of Kafka Streams.
"""
PARTITIONER = DECLARED["partitioner"]
TOPICS, TOPIC, KEY_SERDE, VALUE_SERDE = "topics", "topic", "serde of keys", "serde of values"
OFFSET_RESET = "offset reset"


@attrs.frozen
class Declared:
    """A declared value: two are equal if they differ only in white space that means nothing."""

    normalized: str
    shown: str = attrs.field(eq=False)


def declared_aspects(topology: Topology, node: Node) -> Mapping[str, Declared] | None:
    """Return aspect → value of a node; None if the input does not show what the node does."""
    found = {aspect: text for aspect, text in _find_aspects(topology, node) if text is not None}
    is_hidden = isinstance(node, ProcessorNode) and node.behavior is None
    return None if is_hidden else {a: Declared(normalize_expression(t), t) for a, t in found.items()}


def _find_aspects(topology: Topology, node: Node) -> Iterator[tuple[str, str | None]]:
    config, graph = topology.application.config, topology.graph
    match node:
        case ProcessorNode(name=name, behavior=Branch() as does):
            yield DECLARED["predicates"], "; ".join(_show_branches(name, does))
        case ProcessorNode(behavior=does) if does is not None:
            yield from _show_fields(does)
        case SourceNode(reads=reads):
            topics = graph.user_topics(node)
            if topics:
                yield TOPICS, ", ".join(sorted(topics))
            if topics and reads is not None:
                yield KEY_SERDE, serde_name(reads.format.key, config, "key")
                yield VALUE_SERDE, serde_name(reads.format.value, config, "value")
            if reads is not None:
                yield from _show_fields(reads)
            if topics and reads is not None and node.name not in topology.nodes.global_nodes:
                yield OFFSET_RESET, reads.offset_reset
            if topics and reads is not None and reads.timestamp is None:
                yield DECLARED["timestamp"], config.get("default.timestamp.extractor")
        case SinkNode(writes=writes):
            is_internal = node.topic in graph.internal
            has_expression = writes is not None and writes.topic_expression is not None
            if not is_internal:
                yield TOPIC, node.extractor if node.topic is None and not has_expression else node.topic
            if not is_internal and writes is not None:
                yield KEY_SERDE, serde_name(writes.format.key, config, "key")
                yield VALUE_SERDE, serde_name(writes.format.value, config, "value")
            if writes is not None:
                yield from _show_fields(writes)
        case _:
            return


def _show_fields(
    settings: Behavior | SourceSettings | SinkSettings | Aggregation,
) -> Iterator[tuple[str, str | None]]:
    for field, value in attrs.asdict(settings, recurse=False).items():
        if isinstance(value, Aggregation):
            yield DECLARED[field], value.kind.value
            yield from ((name, text) for name, text in attrs.asdict(value).items() if name != "kind")
        elif field in DECLARED:
            yield DECLARED[field], _show_field(field, value)


def _show_branches(name: str, split: Branch) -> Iterator[str]:
    """Yield each condition of the split `name` with the branch of its records, if a user named the branch."""
    children = (*split.children, *([split.default] if split.default is not None else []))
    for number, (condition, child) in enumerate(
        zip((*split.predicates, "default"), children, strict=False), start=1
    ):
        branch = child.removeprefix(name)
        generated = "0" if child == split.default else str(number)
        yield f"{condition}" if branch == generated else f"{condition} → {branch}"


def _show_field(field: str, value: object) -> str | None:
    if field == "emit_on_close":
        return "onWindowClose" if value else "onWindowUpdate"
    if value is None or value is False:
        return None
    if value is True:
        return "yes" if field != "keeps_value" else "as it is"
    if isinstance(value, tuple):
        return "; ".join(str(each) for each in value)
    if field == "window":
        return _window_text(value)
    return duration_phrase(value) if field.endswith("_ms") and isinstance(value, int) else str(value)


def _window_text(window: object) -> str:
    if isinstance(window, JoinWindow):
        eager = ", eager" if window.eager else ""
        before, after = duration_phrase(window.before_ms), duration_phrase(window.after_ms)
        return f"{before} before, {after} after, grace {duration_phrase(window.grace_ms)}{eager}"
    grace = getattr(window, "grace_ms", None)
    text = windows_phrase(window)  # type: ignore[arg-type]
    return text if grace is None else f"{text}, grace {duration_phrase(grace)}"
