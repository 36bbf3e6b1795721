"""PURE. The tree sets of nodes that `TopologyDescription` prints (facts 3.4).

Kafka Streams keeps neighbors in a `TreeSet` whose comparison (size descending, name ascending) reads sizes
that still change while the sets are filled. Where a node ends up depends on the sizes at the time and on the
shape of the tree then; a node that is added twice may even stand there twice.
"""

from collections.abc import Iterator, Mapping, Sequence

from infra.compiler.java.red_black_tree import RedBlackTree


class NodeSet:
    """Node names in the order in which Kafka Streams prints them; `sizes` is shared with whoever counts."""

    __slots__ = ("_names", "_sizes", "_tree")

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._tree: RedBlackTree[str] = RedBlackTree()
        self._names: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return iter(self._tree)

    @property
    def members(self) -> Sequence[str]:
        """What was added, in the order of insertion."""
        return self._names

    def add(self, name: str) -> None:
        """Insert `name` unless the search, which trusts the order, comes across it."""
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
