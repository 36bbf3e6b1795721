"""The graph of DSL calls, as it stands before anything is written (facts 3.1).

A node may write several topology nodes; what it writes is its `declares`. Parents and children are ordered
sets (dictionaries without values): their order decides the order of parents in the topology and which parent
the searches of the optimization see first.

A node's parents are complete when the last call that attaches it returns, and every later node is attached
below. So what is searched for upwards (the nearest key change, the grace of a window, versioning) is known at
once from the parents' answers.
"""

from collections.abc import Callable
from operator import attrgetter

import attrs

from infra.compiler.dsl.declarations import Declaration
from infra.model.problems import Location


@attrs.define(eq=False, repr=False)
class GraphNode:
    """One call's node. `versioned` None = as its parents; `grace_ms` set = the aggregation of a window."""

    name: str
    declares: Declaration | None = None
    at: Location | None = None
    changes_key: bool = False
    changes_value: bool = False
    is_merge: bool = False
    relaxes_null_keys: bool = False
    keeps_null_keys: bool = False
    """Of a repartition: a join that takes null keys lies below (facts 2.2). Known when it is written."""
    versioned: bool | None = None
    grace_ms: int | None = None

    priority: int = -1
    first_priority: int = -1
    parents: "dict[GraphNode, None]" = attrs.field(factory=dict)
    children: "dict[GraphNode, None]" = attrs.field(factory=dict)
    key_changer: "GraphNode | None" = None
    """What the upward search for a key-changing node finds, starting here."""
    changer: "GraphNode | None" = None
    """Likewise for a node that changes key or value."""
    window_grace_ms: int | None = None
    """The grace of the windows upstream; None when some way up to the root has no windowed aggregation."""
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
    """The root and the running number that gives each attached node its priority."""

    def __init__(self) -> None:
        self.root = GraphNode("root")
        self._next = 0

    def attach(self, node: GraphNode, *parents: GraphNode) -> GraphNode:
        """Hang `node` below `parents`, in order. Each time it gets a new priority: the last one stays."""
        for parent in parents:
            parent.add_child(node)
            node.priority = self._next
            self._next += 1
        if node.first_priority < 0:
            node.first_priority = node.priority
        node.key_changer = _search_up(node, _changes_key, attrgetter("key_changer"))
        node.changer = _search_up(node, _changes_key_or_value, attrgetter("changer"))
        node.window_grace_ms = _grace_of(node)
        inherits = all(parent.is_versioned for parent in node.parents)
        node.is_versioned = inherits if node.versioned is None else node.versioned
        return node


def _search_up(
    start: GraphNode,
    matches: Callable[[GraphNode], bool],
    answer_of: Callable[[GraphNode], GraphNode | None],
) -> GraphNode | None:
    """The first parent that matches, otherwise what the last parent answers (facts 2.5.1)."""
    if matches(start):
        return start
    answer = None
    for parent in start.parents:
        if matches(parent):
            return parent
        answer = answer_of(parent)
    return answer


def _changes_key(node: GraphNode) -> bool:
    return node.changes_key


def _changes_key_or_value(node: GraphNode) -> bool:
    return node.changes_key or node.changes_value


def _grace_of(node: GraphNode) -> int | None:
    if node.grace_ms is not None:
        return node.grace_ms
    graces = [parent.window_grace_ms for parent in node.parents]
    known = [grace for grace in graces if grace is not None]
    return max(known) if known and len(known) == len(graces) else None


def reachable(root: GraphNode) -> list[GraphNode]:
    """Every node below `root`, each once."""
    seen = {root: None}
    pending = [root]
    while pending:
        for child in pending.pop().children:
            if child not in seen:
                seen[child] = None
                pending.append(child)
    return list(seen)


def mark_kept_null_keys(root: GraphNode) -> None:
    """Mark what has a join below that takes null keys."""
    pending = [parent for node in reachable(root) if node.relaxes_null_keys for parent in node.parents]
    while pending:
        node = pending.pop()
        if not node.keeps_null_keys:
            node.keeps_null_keys = True
            pending.extend(node.parents)
