"""Finds the operators that do something else after an edit, and names what has changed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headwater.model.nodes import Node, SinkNode, SourceNode
from headwater.model.operators import Step
from headwater.model.topology import TopologyDocument
from headwater.planner.document_settings import call_options, topology_content
from headwater.planner.edits.added_operators import STAYS, added_and_removed_operators
from headwater.planner.edits.declared import (
    KEY_SERDE,
    OFFSET_RESET,
    PARTITIONER,
    TOPIC,
    TOPICS,
    VALUE_SERDE,
    Declared,
    declared,
)
from headwater.planner.edits.graph import Graph, tables
from headwater.planner.edits.pairs import Pair, Pairs, paired_nodes
from headwater.planner.edits.settings import OFFSET_RESET as OFFSET_RESET_RULE
from headwater.planner.edits.settings import camel_case
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import OperatorEdit, TopicEdit, Verdict
from headwater.planner.phrases import listed

INPUT, TABLE, OPERATOR, NAME = "input", "joined table", "operator", "name"
_WHY = {
    TOPIC: "Records that were written before stay in the other topic.",
    PARTITIONER: "Records that were written before stay in their partitions.",
    INPUT: "Stores and topics after it have results of both inputs.",
    TABLE: "Stores and topics after it have results of both tables.",
    NAME: "Only names of topics and stores decide what is kept: they are in the verdicts.",
}
_OF_SOURCES = {
    OFFSET_RESET: OFFSET_RESET_RULE,
    TOPICS: "Stores and topics after it have results of the former topics, too.",
    KEY_SERDE: "Records that are not processed before the edit must have the new format.",
    VALUE_SERDE: "Records that are not processed before the edit must have the new format.",
}
_OF_GLOBAL = {
    TOPICS: "Stop each instance and delete the local state of the global store before it starts again: the "
    "store keeps entries of the former topic there.",
    KEY_SERDE: "All records of the topic must have the new format.",
    VALUE_SERDE: "All records of the topic must have the new format.",
}
_OF_SINKS = {
    KEY_SERDE: "The topic has records of both formats, so what reads it must know both.",
    VALUE_SERDE: "The topic has records of both formats, so what reads it must know both.",
}


def edited_operators(
    before: Topology, after: Topology, topics: Sequence[TopicEdit] = ()
) -> tuple[OperatorEdit, ...]:
    """Return what changes of each operator, in the order of the topology afterwards.

    Operators that were added or removed are last. `topics` are the verdicts: the stores after an operator are
    named if they are kept.
    """
    pairs = paired_nodes(before, after)
    kept = {topic.store for topic in topics if topic.verdict is Verdict.KEPT and topic.store is not None}
    found = []
    for node, aspect, old, new in _changes(before, after, pairs):
        stores = after.graph.stores_after(node.name)
        why = _why(node, aspect, is_global=node.name in after.nodes.global_nodes)
        found.append(
            OperatorEdit(
                operator=node.name,
                aspect=aspect,
                before=old,
                after=new,
                why=why,
                stores=tuple(sorted(stores & kept)),
                location=node.at,
            )
        )
    found += added_and_removed_operators(before, after, pairs, topics, OPERATOR)
    return tuple(found)


def calls_without_effect(
    before: TopologyDocument,
    after: TopologyDocument,
    topics: tuple[TopicEdit, ...],
    operators: tuple[OperatorEdit, ...],
) -> Iterator[str]:
    """Yield a sentence about edited calls if nothing else shows that the topology was edited.

    For example, `retention` of a key-value store is ignored. Another option decides only the format of
    records that no store and no topic has.
    """
    if not (before.has_calls and after.has_calls):
        return
    if operators or not all(topic.is_unchanged for topic in topics):
        return
    if topology_content(before) == topology_content(after):
        return
    options = ", ".join(dict.fromkeys(_edited_options(before.steps, after.steps)))
    edited = f" ({options})" if options else ""
    yield (
        f"The topology was edited{edited}, but its operators, stores and topics are the same: the option "
        "does not apply there, or is a format of records that no store or topic has."
    )


def _why(node: Node, aspect: str, *, is_global: bool) -> str:
    of_kind: Mapping[str, str] = {}
    if isinstance(node, SourceNode):
        of_kind = _OF_GLOBAL if is_global else _OF_SOURCES
    elif isinstance(node, SinkNode):
        of_kind = _OF_SINKS
    return of_kind.get(aspect) or _WHY.get(aspect, STAYS)


def _changes(
    before: Topology, after: Topology, pairs: Pairs
) -> Iterator[tuple[Node, str, str | None, str | None]]:
    """Yield the node afterwards, the aspect, and its value before and afterwards."""
    # A repartition is no input: it is wherever the operators around need it. Operators that may be others are
    # none either: the operators before them are compared.
    names = {
        pair.new.name: pair.old.name
        for pair in pairs.pairs
        if pair.is_certain and not after.graph.is_internal(pair.new.name)
    }
    for pair in pairs.pairs:
        if pair.replacement is not None and not after.graph.is_internal(pair.new.name):
            yield pair.new, OPERATOR, *pair.replacement
        elif pair.new_name is not None and not after.graph.is_internal(pair.new.name):
            yield pair.new, NAME, *pair.new_name
        old, new = declared(before, pair.old), declared(after, pair.new)
        if old is not None and new is not None:
            for aspect in dict.fromkeys((*old, *new)):
                first, second = old.get(aspect), new.get(aspect)
                if first != second:
                    yield pair.new, aspect, _shown(first), _shown(second)
        if pair.is_certain and not after.graph.is_internal(pair.new.name):
            yield from _changed_inputs(before.graph, after.graph, pair, names)


def _changed_inputs(
    before: Graph, after: Graph, pair: Pair, names: Mapping[str, str]
) -> Iterator[tuple[Node, str, str | None, str | None]]:
    old = before.nearest(before.parents[pair.old.name], names.values(), before.parents)
    new = after.nearest(after.parents[pair.new.name], names, after.parents)
    if old != {names[name] for name in new}:
        yield pair.new, INPUT, _labels(before, old), _labels(after, new)
    yield from _changed_tables(before, after, pair, names)


def _changed_tables(
    before: Graph, after: Graph, pair: Pair, names: Mapping[str, str]
) -> Iterator[tuple[Node, str, str | None, str | None]]:
    """Yield the tables of a join, if their source topics or operators are others."""
    old, new = tables(pair.old, before), tables(pair.new, after)
    topics = before.inputs(old, before.parents_and_writers), after.inputs(new, after.parents_and_writers)
    if topics[0] != topics[1]:
        first, second = (f"from {listed(each)}" if each else None for each in topics)
        yield pair.new, TABLE, first, second
    elif old and new:
        first_known = before.nearest(old, names.values(), before.parents)
        second_known = after.nearest(new, names, after.parents)
        if first_known != {names[name] for name in second_known}:
            yield pair.new, TABLE, _table_names(before, old), _table_names(after, new)


def _shown(value: Declared | None) -> str | None:
    return value.shown if value is not None else None


def _labels(graph: Graph, names: set[str]) -> str:
    topics = {name: graph.user_topics(graph.nodes[name]) for name in names}
    return listed(", ".join(topics[name]) or name for name in names)


def _table_names(graph: Graph, tables_: Iterable[str]) -> str:
    return listed(", ".join(graph.stores_of(name)) or name for name in tables_)


def _edited_options(before: tuple[Step, ...], after: tuple[Step, ...]) -> Iterator[str]:
    """Yield location and name of each option with another value, if both sides have the same calls."""
    if [type(step.operator) for step in before] != [type(step.operator) for step in after]:
        return
    for old, new in zip(before, after, strict=True):
        first, second = call_options(old), call_options(new)
        for name in sorted({*first, *second}):
            if first.get(name) != second.get(name):
                key = camel_case(name)
                yield f"{new.at}: {key}"
