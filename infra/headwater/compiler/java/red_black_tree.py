"""Red-black trees as Java balances them; their shape matters where comparisons change over time."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K")


class Entry(Generic[K]):
    """A node of the tree."""

    __slots__ = ("is_red", "key", "left", "parent", "right")

    def __init__(self, key: K, parent: "Entry[K] | None") -> None:
        self.key = key
        self.parent = parent
        self.left: Entry[K] | None = None
        self.right: Entry[K] | None = None
        self.is_red = True


class RedBlackTree(Generic[K]):
    """A red-black tree without deletion; iteration is in order."""

    __slots__ = ("root",)

    def __init__(self) -> None:
        self.root: Entry[K] | None = None

    def __iter__(self) -> Iterator[K]:
        stack: list[Entry[K]] = []
        entry = self.root
        while stack or entry is not None:
            while entry is not None:
                stack.append(entry)
                entry = entry.left
            entry = stack.pop()
            yield entry.key
            entry = entry.right

    def insert(self, key: K, compare: Callable[[K], int]) -> "Entry[K] | None":
        """Insert `key` by `compare(other)` (negative = left of `other`) unless a comparison gives 0.

        Return the parent entry, or the equal one; None for the first key.
        """
        parent, entry, side = None, self.root, 0
        while entry is not None:
            parent, side = entry, compare(entry.key)
            if side == 0:
                return entry
            entry = entry.left if side < 0 else entry.right
        added = Entry(key, parent)
        if parent is None:
            added.is_red = False
            self.root = added
        elif side < 0:
            parent.left = added
        else:
            parent.right = added
        self._balance(added)
        return parent

    def _balance(self, entry: Entry[K]) -> None:
        while (parent := entry.parent) is not None and parent.is_red and (above := parent.parent) is not None:
            on_left = parent is above.left
            uncle = above.right if on_left else above.left
            if uncle is not None and uncle.is_red:
                parent.is_red = uncle.is_red = False
                above.is_red = True
                entry = above
                continue
            if entry is (parent.right if on_left else parent.left):
                entry, parent = parent, entry
                self._rotate(entry, to_left=on_left)
            parent.is_red = False
            above.is_red = True
            self._rotate(above, to_left=not on_left)
        if self.root is not None:
            self.root.is_red = False

    def _rotate(self, entry: Entry[K], *, to_left: bool) -> None:
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
            self.root = risen
        elif entry.parent.left is entry:
            entry.parent.left = risen
        else:
            entry.parent.right = risen
        entry.parent = risen
