"""The graph of DSL calls before it is written to the topology (`GraphNode`, facts 3.1).

A graph node may write several topology nodes (`declares`). Parents and children are ordered sets
(dictionaries without values): their order decides the order of parents in the topology and which parent the
searches of the optimization find first.

All parents of a node are attached before its children. So the results of upward searches (the nearest key
change, the grace of a window, versioning) are computed from results of the parents when a node is attached.

A downstream call enables it. A table without a store also enables it on its upstream tables; a source table
then needs a store. Nothing recurses, because chains of tables may be long.
"""

from collections.abc import Callable
from operator import attrgetter

import attrs

from headwater.compiler.dsl.declarations import Declaration
from headwater.model.problems import Location


@attrs.define(eq=False, repr=False)
class GraphNode:
    """The node of one call.

    `versioned` None = as its parents. `grace_ms` is set for windowed aggregations, in milliseconds.
    """

    name: str
    declares: Declaration | None = None
    at: Location | None = None
    changes_key: bool = False
    changes_value: bool = False
    is_merge: bool = False
    relaxes_null_keys: bool = False
    keeps_null_keys: bool = False
    """Of a repartition: a join that accepts null keys is downstream (facts 2.2). Set before writing."""
    versioned: bool | None = None
    grace_ms: int | None = None

    priority: int = -1
    first_priority: int = -1
    parents: "dict[GraphNode, None]" = attrs.field(factory=dict)
    children: "dict[GraphNode, None]" = attrs.field(factory=dict)
    key_changer: "GraphNode | None" = None
    """The result of the upward search for a key-changing node from here."""
    changer: "GraphNode | None" = None
    """The result of the upward search for a node that changes key or value."""
    window_grace_ms: int | None = None
    """The largest grace upstream in milliseconds; None if a path to the root has no windowed aggregation."""
    is_versioned: bool = False

    def __repr__(self) -> str:
        return f"GraphNode({self.name})"

    def add_child(self, child: "GraphNode") -> None:
        self.children[child] = None
        child.parents[self] = None

    def remove_child(self, child: "GraphNode") -> None:
        if child in self.children:
            del self.children[child]
            child.parents.pop(self, None)

    def clear_children(self) -> None:
        for child in self.children:
            child.parents.pop(self, None)
        self.children.clear()


class Graph:
    """The root, and the counter of build priorities (`GraphNode#buildPriority`)."""

    def __init__(self, *, searches_all_parents: bool = False) -> None:
        self.root = GraphNode("root")
        self._search_up = _search_all_parents if searches_all_parents else _search_to_last_parent
        self._next = 0

    def attach(self, node: GraphNode, *parents: GraphNode) -> GraphNode:
        """Attach `node` below `parents`, in order; each parent gives a new priority, the last one counts."""
        for parent in parents:
            parent.add_child(node)
            node.priority = self._next
            self._next += 1
        if node.first_priority < 0:
            node.first_priority = node.priority
        node.key_changer = self._search_up(node, attrgetter("changes_key"), attrgetter("key_changer"))
        node.changer = self._search_up(node, _changes_key_or_value, attrgetter("changer"))
        node.window_grace_ms = _grace_of(node)
        inherits = all(parent.is_versioned for parent in node.parents)
        node.is_versioned = inherits if node.versioned is None else node.versioned
        return node


def _search_all_parents(
    start: GraphNode,
    matches: Callable[[GraphNode], bool],
    answer_of: Callable[[GraphNode], GraphNode | None],
) -> GraphNode | None:
    """Return the first match above `start`, parent by parent (`FIRST_KEY_CHANGE_FOUND`)."""
    if matches(start):
        return start
    return next((answer for parent in start.parents if (answer := answer_of(parent)) is not None), None)


def _search_to_last_parent(
    start: GraphNode,
    matches: Callable[[GraphNode], bool],
    answer_of: Callable[[GraphNode], GraphNode | None],
) -> GraphNode | None:
    """Return the first parent that matches, otherwise the result of the last parent (facts 2.5.1)."""
    if matches(start):
        return start
    answer = None
    for parent in start.parents:
        if matches(parent):
            return parent
        answer = answer_of(parent)
    return answer


def _changes_key_or_value(node: GraphNode) -> bool:
    return node.changes_key or node.changes_value


def _grace_of(node: GraphNode) -> int | None:
    if node.grace_ms is not None:
        return node.grace_ms
    graces = [parent.window_grace_ms for parent in node.parents]
    known = [grace for grace in graces if grace is not None]
    return max(known) if known and len(known) == len(graces) else None


def reachable_nodes(root: GraphNode) -> list[GraphNode]:
    """Return `root` and all nodes below it, each once."""
    seen = {root: None}
    pending = [root]
    while pending:
        for child in pending.pop().children:
            if child not in seen:
                seen[child] = None
                pending.append(child)
    return list(seen)


def mark_kept_null_keys(root: GraphNode) -> None:
    """Mark the nodes upstream of a join that accepts null keys (KIP-962)."""
    pending = [parent for node in reachable_nodes(root) if node.relaxes_null_keys for parent in node.parents]
    while pending:
        node = pending.pop()
        if not node.keeps_null_keys:
            node.keeps_null_keys = True
            pending.extend(node.parents)
