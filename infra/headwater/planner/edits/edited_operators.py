"""Find the operators that do something else after an edit, or were added or removed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from headwater.model.behaviors import (
    StreamGlobalJoin,
    StreamTableJoin,
    TableFilter,
    TableJoinMerge,
    TableMapValues,
    TableTableJoin,
)
from headwater.model.formats import (
    FilteredView,
    JoinedView,
    MappedView,
    StoreView,
    SuppressedView,
    TableView,
    TransformedView,
)
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater.model.operators import Step
from headwater.model.topology import TopologyDocument
from headwater.planner.document_settings import call_options, topology_content
from headwater.planner.edits.declared import (
    KEY_SERDE,
    OFFSET_RESET,
    PARTITIONER,
    TOPIC,
    TOPICS,
    VALUE_SERDE,
    Declared,
    declared_aspects,
)
from headwater.planner.edits.graph import INDEX, Graph
from headwater.planner.edits.pairs import Pair, Pairs, paired_nodes
from headwater.planner.edits.settings import OFFSET_RESET as OFFSET_RESET_RULE
from headwater.planner.edits.settings import camel_case
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import OperatorEdit, TopicEdit, Verdict
from headwater.planner.phrases import few_names, listed

INPUT, TABLE, OPERATOR, NAME = "input", "joined table", "operator", "name"
_STAYS = "What stores and topics contain stays as it was computed before."
_OWN_STORES = "Its state is in the verdicts of its stores."
_ADDED_SOURCE = "Where no offset is committed, the offset reset decides where reading starts."
_ADDED_GLOBAL = "Each instance reads its whole topic when it starts."
_REMOVED_SOURCE = "Its topics are not read any more. Stores and topics after it keep results of them."
_REMOVED_GLOBAL = "Its topic is not read any more. Delete the local state of the global store."
_ADDED_SINK = "Its topic gets the results of records that are processed from now on."
_REMOVED_SINK = "Its topic gets no more records."
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
    for node, aspect, old, new in _find_changes(before, after, pairs):
        stores = after.graph.stores_after(node.name)
        why = _explain_change(node, aspect, is_global=node.name in after.nodes.global_nodes)
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
    found += _added_and_removed(before, after, pairs, topics)
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


def _explain_change(node: Node, aspect: str, *, is_global: bool) -> str:
    of_kind: Mapping[str, str] = {}
    if isinstance(node, SourceNode):
        of_kind = _OF_GLOBAL if is_global else _OF_SOURCES
    elif isinstance(node, SinkNode):
        of_kind = _OF_SINKS
    return of_kind.get(aspect) or _WHY.get(aspect, _STAYS)


def _find_changes(
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
        old, new = declared_aspects(before, pair.old), declared_aspects(after, pair.new)
        if old is not None and new is not None:
            for aspect in dict.fromkeys((*old, *new)):
                first, second = old.get(aspect), new.get(aspect)
                if first != second:
                    yield pair.new, aspect, _show_value(first), _show_value(second)
        if pair.is_certain and not after.graph.is_internal(pair.new.name):
            yield from _changed_inputs(before.graph, after.graph, pair, names)


def _changed_inputs(
    before: Graph, after: Graph, pair: Pair, names: Mapping[str, str]
) -> Iterator[tuple[Node, str, str | None, str | None]]:
    old = before.nearest_known(before.parents[pair.old.name], names.values(), before.parents)
    new = after.nearest_known(after.parents[pair.new.name], names, after.parents)
    if old != {names[name] for name in new}:
        yield pair.new, INPUT, _list_labels(before, old), _list_labels(after, new)
    yield from _changed_tables(before, after, pair, names)


def _changed_tables(
    before: Graph, after: Graph, pair: Pair, names: Mapping[str, str]
) -> Iterator[tuple[Node, str, str | None, str | None]]:
    """Yield the tables of a join, if their source topics or operators are others."""
    old, new = _find_joined_tables(pair.old, before), _find_joined_tables(pair.new, after)
    topics = (
        before.input_topics(old, before.parents_and_writers),
        after.input_topics(new, after.parents_and_writers),
    )
    if topics[0] != topics[1]:
        first, second = (f"from {listed(each)}" if each else None for each in topics)
        yield pair.new, TABLE, first, second
    elif old and new:
        first_known = before.nearest_known(old, names.values(), before.parents)
        second_known = after.nearest_known(new, names, after.parents)
        if first_known != {names[name] for name in second_known}:
            yield pair.new, TABLE, _table_names(before, old), _table_names(after, new)


def _show_value(value: Declared | None) -> str | None:
    return value.shown if value is not None else None


def _list_labels(graph: Graph, names: set[str]) -> str:
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


def _added_and_removed(
    before: Topology, after: Topology, pairs: Pairs, topics: Sequence[TopicEdit]
) -> Iterator[OperatorEdit]:
    """Yield the added operators, then the removed operators; all nodes of one call are one operator.

    Parts of repartitions are left out: their topics have verdicts.
    """
    kept = {topic.store for topic in topics if topic.verdict is Verdict.KEPT and topic.store is not None}
    for topology, nodes, is_added in ((after, pairs.added, True), (before, pairs.removed, False)):
        for call in _group_by_call(topology, nodes):
            name = ", ".join(node.name for node in call)
            stores = {store for node in call for store in topology.graph.stores_after(node.name)}
            why = (
                _added_or_removed_why(topology, call, is_added=is_added),
                _describe_shifts(topology, call, topics, is_added=is_added),
            )
            yield OperatorEdit(
                operator=name,
                aspect=OPERATOR,
                before=None if is_added else name,
                after=name if is_added else None,
                why=" ".join(filter(None, why)),
                stores=tuple(sorted(stores & kept)),
                location=call[0].at,
            )


def _group_by_call(topology: Topology, nodes: Iterable[Node]) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes of each call together; a text has no calls."""
    found: dict[object, list[Node]] = {}
    for node in nodes:
        if not topology.graph.is_internal(node.name):
            key = node.at if topology.document.has_calls and node.at is not None else node.name
            found.setdefault(key, []).append(node)
    yield from map(tuple, found.values())


def _added_or_removed_why(topology: Topology, call: Sequence[Node], *, is_added: bool) -> str:
    is_global = any(node.name in topology.nodes.global_nodes for node in call)
    if any(isinstance(node, SourceNode) for node in call):
        if is_global:
            return _ADDED_GLOBAL if is_added else _REMOVED_GLOBAL
        return _ADDED_SOURCE if is_added else _REMOVED_SOURCE
    if any(isinstance(node, SinkNode) for node in call):
        return _ADDED_SINK if is_added else _REMOVED_SINK
    graph = topology.graph
    writes = any(
        store in topology.stores and any(graph.writers_among(store, [node.name]))
        for node in call
        if isinstance(node, ProcessorNode)
        for store in node.stores
    )
    return _OWN_STORES if writes else _STAYS


def _describe_shifts(
    topology: Topology, call: Sequence[Node], topics: Iterable[TopicEdit], *, is_added: bool
) -> str:
    """Return a sentence about topics whose generated number is another one because of the operator.

    An operator with a name takes a number, too, which its name does not show: then the order decides.
    """
    first = min(topology.graph.order[node.name] for node in call)
    numbers = [int(index[0]) for node in call if (index := INDEX.search(node.name))]
    found = []
    for topic in topics:
        name = topic.topic if is_added else topic.former
        if name is None or not _is_shifted(topic):
            continue
        is_after = _read_index(name) > min(numbers) if numbers else _find_position(topology, name) > first
        if is_after:
            found.append(str(topic.former))
    return f"It shifts the numbers in generated names after it: {few_names(sorted(found))}." if found else ""


def _find_position(topology: Topology, topic: str) -> int:
    """Return the position of the first node that uses an internal topic, or its store."""
    internal = topology.topics.get(topic)
    store = internal.node if internal is not None else None
    names = {topology.short_name(topic), topic}
    return min(
        (
            topology.graph.order[node.name]
            for node in topology.nodes.nodes
            if (isinstance(node, ProcessorNode) and store in node.stores)
            or (isinstance(node, SourceNode) and names & set(node.topics))
        ),
        default=-1,
    )


def _is_shifted(topic: TopicEdit) -> bool:
    former = str(topic.former)
    return former != topic.topic and INDEX.sub("#", former) == INDEX.sub("#", topic.topic) != topic.topic


def _read_index(topic: str) -> int:
    found = INDEX.search(topic)
    return int(found[0]) if found else -1


def _find_joined_tables(node: Node, graph: Graph) -> tuple[str, ...]:
    """Return the operators that compute the tables of a join, if its input does not show them.

    Of a text, these are the operators that write the stores. Operators that do the same with the same table
    count as one operator.
    """
    if not isinstance(node, ProcessorNode):
        return ()
    match node.behavior:
        case StreamTableJoin(table=view):
            return _find_view_operators(view, graph)
        case None | StreamGlobalJoin():
            return graph.parents_and_writers[node.name][len(graph.parents[node.name]) :]
        case _:
            return ()


def _find_view_operators(view: TableView, graph: Graph) -> tuple[str, ...]:
    match view:
        case StoreView(store=store) | SuppressedView(store=store):
            writer = graph.writer_of(store)
            return (writer,) if writer is not None else ()
        case TransformedView(node=name):
            return (name,)
        case _:
            return next(
                ((name,) for name, node in graph.nodes.items() if _computes_view(node, view, graph)), ()
            )


def _computes_view(node: Node, view: TableView, graph: Graph) -> bool:
    """Return whether an operator computes the values of a view that has no store."""
    match node.behavior if isinstance(node, ProcessorNode) else None, view:
        case TableFilter(store=None) as does, FilteredView():
            return (does.where, does.negate, does.parent) == (view.where, view.negate, view.parent)
        case TableMapValues(store=None) as does, MappedView():
            return (does.value, does.parent) == (view.value, view.parent)
        case TableJoinMerge(store=None), JoinedView():
            sides = [getattr(graph.nodes[name], "behavior", None) for name in graph.parents[node.name]]
            return any(
                isinstance(side, TableTableJoin)
                and side.is_left
                and (side.kind, side.value, side.own, side.other)
                == (view.kind, view.value, view.left, view.right)
                for side in sides
            )
        case _:
            return False
