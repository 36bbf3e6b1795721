"""Links nodes to parents and children like `InternalTopologyBuilder#describeSubtopology` (facts 3.4).

Kafka Streams keeps neighbors in a `TreeSet` whose comparator (size descending, name ascending) reads sizes
that still change while the sets are filled. The position of a node depends on the sizes and on the shape of
the tree at the time of insertion; a node that is added twice may be in the set twice.
"""

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence

import attrs

from headwater.compiler.java.red_black_tree import RedBlackTree


class NodeSet:
    """Node names in the order in which Kafka Streams prints them; `sizes` changes during insertions."""

    __slots__ = ("_names", "_sizes", "_tree")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._tree: RedBlackTree[str] = RedBlackTree()
        self._names: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    @property
    def members(self) -> Sequence[str]:
        """Return the nodes in the order of insertion."""
        return self._names

    def add(self, name: str) -> None:
        """Insert `name` unless the search, which assumes a sorted tree, finds it."""
        sizes, size = self._sizes, self._sizes[name]
        found = False

        def compare(other: str) -> int:
            nonlocal found
            if other == name:
                found = True
                return 0
            difference = sizes[other] - size
            return difference or (-1 if name < other else 1)

        self._tree.insert(name, compare)
        if not found:
            self._names.append(name)


@attrs.frozen
class Links:
    """Parents and children of each node; a node's size is 1 + the sizes of its children.

    A descendant counts once for each path to it.
    """

    sizes: Mapping[str, int]
    parents: Mapping[str, NodeSet]
    children: Mapping[str, NodeSet]


def linked(order: Iterable[str], declared: Mapping[str, Sequence[str]]) -> Links:
    """Link the nodes in `order`, each to its `declared` parents; the keys are all nodes, parents first."""
    sizes = dict.fromkeys(declared, 1)
    parents = {name: NodeSet(sizes) for name in declared}
    children = {name: NodeSet(sizes) for name in declared}
    rank = {name: index for index, name in enumerate(declared)}
    for name in order:
        for parent in declared[name]:
            parents[name].add(parent)
            children[parent].add(name)
            _grow(parent, sizes[name], sizes, parents, rank)
    return Links(sizes, parents, children)


def _grow(
    node: str, by: int, sizes: dict[str, int], parents: Mapping[str, NodeSet], rank: Mapping[str, int]
) -> None:
    """Add `by` to `node` and, once for each path, to its linked ancestors.

    Kafka Streams recurses over all paths, whose number may be exponential. Here each node is visited once, by
    descending rank, after all its descendants.
    """
    while True:
        sizes[node] += by
        above = parents[node].members
        if len(above) != 1:
            break
        node = above[0]
    if not above:
        return
    due: dict[str, int] = {}
    queue: list[tuple[int, str]] = []

    def pass_on(names: Iterable[str], amount: int) -> None:
        for name in names:
            if name not in due:
                due[name] = 0
                heapq.heappush(queue, (-rank[name], name))
            due[name] += amount

    pass_on(above, by)
    while queue:
        name = heapq.heappop(queue)[1]
        amount = due.pop(name)
        sizes[name] += amount
        pass_on(parents[name].members, amount)
