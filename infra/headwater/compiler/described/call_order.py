"""The order of the calls that created co-partition groups.

Overlapping groups are enforced in the order of their calls, and counts can depend on it. A generated name
contains the index of its call. A call with names of the user takes its indices, too, but no name has them:
they are missing in the text.
"""

import re
from collections.abc import Iterable, Mapping

import attrs

from headwater.compiler.described.names import (
    RESOLVER_NODE,
    TABLE_JOIN_NAME,
    index_in,
)
from headwater.compiler.described.structure import Structure, parents_first
from headwater.model.nodes import ProcessorNode, SourceNode

Order = tuple[int, int, int]
"""Index of the call, 1 for the second group of a foreign-key join, position in the text."""

_FOREIGN_KEY_INDICES = 13
_RESULT_STORE = re.compile(r"(KTABLE-FK-JOIN-OUTPUT|KTABLE-MERGE)-STATE-STORE-(\d{10})")
_SUFFIXES: tuple[tuple[re.Pattern[str], int], ...] = (
    (re.compile(r"(.+)-subscription-(?:join-foreign|response-resolver)"), _FOREIGN_KEY_INDICES),
    (re.compile(r"(.+)-(?:outer-)?(?:this|other)-join"), 5),
    (TABLE_JOIN_NAME, 3),
    (re.compile(r"(.+)-cogroup-agg-\d+"), 2),
    (re.compile(r"(.+)"), 1),
)
"""Names of nodes whose first part is the user's name, and how many indices the call takes (facts 1.4)."""


@attrs.frozen
class CallOrder:
    """The index of the call of each node that may have a group."""

    index: Mapping[str, int]

    @classmethod
    def from_nodes(cls, structure: Structure, nodes: Iterable[ProcessorNode]) -> "CallOrder":
        """Find the indices of `nodes`, in the order of the text.

        A call with names of the user gets the first missing indices after the indices of the calls before it.
        If several calls fit, the calls that take the most indices come first, and of these the last calls.
        """
        found: dict[str, int] = {}
        taken: set[int] = set()
        unknown: dict[tuple[str, int], list[str]] = {}
        for node in nodes:
            index, call = _index_of(node, structure), _call_of(node.name)
            if index is None:
                unknown.setdefault(call, []).append(node.name)
                continue
            found[node.name] = index
            if index_in(node.name) is None:
                taken.update(range(index, index + call[1]))
        if unknown:
            used, latest = _find_indices(structure)
            used |= taken
            after = {call: max(latest.get(name, -1) for name in names) for call, names in unknown.items()}
            for call in sorted(unknown, key=lambda each: (-each[1], -after[each])):
                start = _first_gap(used, after[call], call[1])
                used.update(range(start, start + call[1]))
                found.update(dict.fromkeys(unknown[call], start))
        return cls(found)

    def of_node(self, node: ProcessorNode, position: int) -> Order:
        """Return the order of the call of a node that is at this position in the text."""
        return self.index[node.name], 1 if RESOLVER_NODE.fullmatch(node.name) else 0, position


def _index_of(node: ProcessorNode, structure: Structure) -> int | None:
    """Return the index of a node's call; a join's stores contain it even if its nodes have names of the user.

    A foreign-key join takes the index of its result's store last, a join of tables takes it first.
    """
    own_stores = (store for store in node.stores if structure.is_join_store(store))
    indices = (index_in(name) for name in (node.name, *own_stores))
    index = next((index for index in indices if index is not None), None)
    if index is not None:
        return index
    name, _ = _call_of(node.name)
    for result in (f"{name}-result", name):
        below = structure.nodes.get(result)
        stores = below.stores if isinstance(below, ProcessorNode) and result != node.name else ()
        for match in filter(None, map(_RESULT_STORE.fullmatch, stores)):
            return int(match[2]) - (_FOREIGN_KEY_INDICES if "-FK-" in match[1] else 0)
    return None


def _call_of(name: str) -> tuple[str, int]:
    """Return the user's name in the name of a node, and how many indices the call takes."""
    matches = ((pattern.fullmatch(name), count) for pattern, count in _SUFFIXES)
    return next((match[1], count) for match, count in matches if match is not None)


def _find_indices(structure: Structure) -> tuple[set[int], dict[str, int]]:
    """Return all indices of a text, and the largest of each node and the nodes upstream of it."""
    used: set[int] = set()
    latest: dict[str, int] = {}
    parents = {
        name: [parent for parent in structure.parents(name) if parent in structure.nodes]
        for name in structure.nodes
    }
    for name in parents_first(parents):
        node = structure.nodes[name]
        topics = node.topics if isinstance(node, SourceNode) else ()
        stores = node.stores if isinstance(node, ProcessorNode) else ()
        own = [index for each in (name, *topics, *stores) if (index := index_in(each)) is not None]
        used.update(own)
        latest[name] = max((*own, *(latest[parent] for parent in parents[name])), default=-1)
    return used, latest


def _first_gap(used: set[int], after: int, count: int) -> int:
    """Return the start of the first `count` unused indices after an index."""
    start = index = after + 1
    while index < start + count:
        if index in used:
            start = index + 1
        index += 1
    return start
