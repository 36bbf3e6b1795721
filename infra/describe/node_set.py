"""PURE. The tree sets of nodes that `TopologyDescription` prints (facts 3.4).

Kafka Streams keeps neighbours in a `TreeSet` whose comparison (size descending, name ascending) reads sizes that still change
while the sets are filled. Where an element ends up depends on the sizes at the time and on the shape of the red-black tree
then, so the tree itself is modelled, as `java.util.TreeMap` balances it.
"""

from collections.abc import Iterator, MutableMapping


class _Entry:
    __slots__ = ("is_red", "left", "name", "parent", "right")

    def __init__(self, name: str, parent: "_Entry | None") -> None:
        self.name = name
        self.parent = parent
        self.left: _Entry | None = None
        self.right: _Entry | None = None
        self.is_red = True


class NodeSet:
    """Node names in the order in which Kafka Streams prints them; `sizes` is shared with whoever counts."""

    __slots__ = ("_names", "_root", "_sizes")

    def __init__(self, sizes: MutableMapping[str, int]) -> None:
        self._sizes = sizes
        self._root: _Entry | None = None
        self._names: list[str] = []

    def __iter__(self) -> Iterator[str]:
        stack: list[_Entry] = []
        entry = self._root
        while stack or entry is not None:
            while entry is not None:
                stack.append(entry)
                entry = entry.left
            entry = stack.pop()
            yield entry.name
            entry = entry.right

    def __len__(self) -> int:
        return len(self._names)

    def members(self) -> list[str]:
        """The names in the order of insertion."""
        return self._names

    def add(self, name: str) -> None:
        """Insert `name` unless the search, which trusts the order, comes across it."""
        if self._root is None:
            self._root = _Entry(name, None)
            self._root.is_red = False
            self._names.append(name)
            return
        sizes = self._sizes
        size = sizes[name]
        entry: _Entry | None = self._root
        parent = self._root
        goes_left = False
        while entry is not None:
            parent = entry
            if entry.name == name:
                return
            other = sizes[entry.name]
            goes_left = name < entry.name if size == other else other < size
            entry = entry.left if goes_left else entry.right
        added = _Entry(name, parent)
        if goes_left:
            parent.left = added
        else:
            parent.right = added
        self._names.append(name)
        self._balance(added)

    def _balance(self, entry: _Entry) -> None:
        while (parent := entry.parent) is not None and parent.is_red and (above := parent.parent) is not None:
            on_left = parent is above.left
            uncle = above.right if on_left else above.left
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                above.is_red = True
                entry = above
                continue
            if entry is (parent.right if on_left else parent.left):
                entry = parent
                self._rotate(entry, to_left=on_left)
            parent = entry.parent
            if parent is not None:
                parent.is_red = False
            above.is_red = True
            self._rotate(above, to_left=not on_left)
        if self._root is not None:
            self._root.is_red = False

    def _rotate(self, entry: _Entry, *, to_left: bool) -> None:
        risen = entry.right if to_left else entry.left
        if risen is None:
            return
        moved = risen.left if to_left else risen.right
        if to_left:
            entry.right, risen.left = moved, entry
        else:
            entry.left, risen.right = moved, entry
        if moved is not None:
            moved.parent = entry
        risen.parent = entry.parent
        if entry.parent is None:
            self._root = risen
        elif entry.parent.left is entry:
            entry.parent.left = risen
        else:
            entry.parent.right = risen
        entry.parent = risen
