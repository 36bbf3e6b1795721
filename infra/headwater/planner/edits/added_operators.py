"""Names the operators that only one side of an edit has, and what that means for names, stores and topics."""

from collections.abc import Iterable, Iterator, Sequence

from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater.planner.edits.graph import INDEX
from headwater.planner.edits.pairs import Pairs
from headwater.planner.edits.topologies import Topology
from headwater.planner.edits.values import OperatorEdit, TopicEdit, Verdict
from headwater.planner.phrases import few

STAYS = "What stores and topics contain stays as it was computed before."
_OWN_STORES = "Its state is in the verdicts of its stores."
_ADDED_SOURCE = "Where no offset is committed, the offset reset decides where reading starts."
_ADDED_GLOBAL = "Each instance reads its whole topic when it starts."
_REMOVED_SOURCE = "Its topics are not read any more. Stores and topics after it keep results of them."
_REMOVED_GLOBAL = "Its topic is not read any more. Delete the local state of the global store."
_ADDED_SINK = "Its topic gets the results of records that are processed from now on."
_REMOVED_SINK = "Its topic gets no more records."


def added_and_removed_operators(
    before: Topology, after: Topology, pairs: Pairs, topics: Sequence[TopicEdit], operator: str
) -> Iterator[OperatorEdit]:
    """Yield the added operators, then the removed ones; all nodes of one call are one operator.

    Parts of repartitions are left out: their topics have verdicts. `operator` is the aspect.
    """
    kept = {topic.store for topic in topics if topic.verdict is Verdict.KEPT and topic.store is not None}
    for topology, nodes, is_added in ((after, pairs.added, True), (before, pairs.removed, False)):
        for call in _calls(topology, nodes):
            name = ", ".join(node.name for node in call)
            stores = {store for node in call for store in topology.graph.stores_after(node.name)}
            why = (
                _why(topology, call, is_added=is_added),
                _shifts(topology, call, topics, is_added=is_added),
            )
            yield OperatorEdit(
                operator=name,
                aspect=operator,
                before=None if is_added else name,
                after=name if is_added else None,
                why=" ".join(filter(None, why)),
                stores=tuple(sorted(stores & kept)),
                location=call[0].at,
            )


def _calls(topology: Topology, nodes: Iterable[Node]) -> Iterator[tuple[Node, ...]]:
    """Yield the nodes of each call together; a text has no calls."""
    found: dict[object, list[Node]] = {}
    for node in nodes:
        if not topology.graph.is_internal(node.name):
            key = node.at if topology.document.has_calls and node.at is not None else node.name
            found.setdefault(key, []).append(node)
    yield from map(tuple, found.values())


def _why(topology: Topology, call: Sequence[Node], *, is_added: bool) -> str:
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
    return _OWN_STORES if writes else STAYS


def _shifts(topology: Topology, call: Sequence[Node], topics: Iterable[TopicEdit], *, is_added: bool) -> str:
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
        is_after = _number(name) > min(numbers) if numbers else _order(topology, name) > first
        if is_after:
            found.append(str(topic.former))
    return f"It shifts the numbers in generated names after it: {few(sorted(found))}." if found else ""


def _order(topology: Topology, topic: str) -> int:
    """Return the position of the first node that uses an internal topic, or its store."""
    internal = topology.topics.get(topic)
    store = internal.node if internal is not None else None
    names = {topology.short(topic), topic}
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


def _number(topic: str) -> int:
    found = INDEX.search(topic)
    return int(found[0]) if found else -1
