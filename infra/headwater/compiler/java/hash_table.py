"""The table of `java.util.HashMap`, as far as it decides the iteration order.

A bucket with nine keys doubles a small table and becomes a red-black tree in a larger one. A tree is iterated
in the order of its list, with the root moved to the front. Such collisions occur: names with generated
indices that differ by eleven are often in the same bucket.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Generic, TypeVar

from headwater.compiler.java.red_black_tree import RedBlackTree

K = TypeVar("K")
Hashed = tuple[int, K]
"""The spread hash and the key."""

SMALLEST_TABLE = 16
_SMALLEST_WITH_TREES = 64
_LONGEST_LIST = 8
_SMALLEST_TREE = 7


def iteration_order(keys: Sequence[Hashed[K]], table: int = SMALLEST_TABLE) -> list[K]:
    """Return the iteration order after inserting distinct `keys` into an empty map with `table` buckets."""
    if len(keys) == 1:
        return [keys[0][1]]
    size = _grown(len(keys), table)
    if _has_long_list(keys, table, size):
        return _Table[K](table).filled(keys)
    return [key for _, key in sorted(keys, key=lambda each: each[0] & size - 1)]


def spread(code: int) -> int:
    """Return `HashMap#hash` of a hash code, unsigned."""
    code &= 0xFFFFFFFF
    return code ^ code >> 16


def _grown(count: int, table: int) -> int:
    while count > table * 3 // 4:
        table *= 2
    return table


def _has_long_list(keys: Sequence[Hashed[K]], table: int, final: int) -> bool:
    """Return whether a bucket has nine keys in any table size up to the `final` one."""
    while table <= final:
        held = Counter(code & table - 1 for code, _ in keys[: table * 3 // 4 + 1])
        if max(held.values(), default=0) > _LONGEST_LIST:
            return True
        table *= 2
    return False


class _Bucket(Generic[K]):
    """The keys of a bucket in iteration order, with the tree if there is one."""

    __slots__ = ("keys", "tree")

    def __init__(self, keys: list[Hashed[K]]) -> None:
        self.keys = keys
        self.tree: RedBlackTree[Hashed[K]] | None = None

    def make_tree(self) -> None:
        self.tree = RedBlackTree()
        for key in self.keys:
            self.tree.insert(key, lambda other, key=key: _compare(key, other))  # type: ignore[misc]
        self._root_to_front()

    def add(self, key: Hashed[K]) -> None:
        if self.tree is None:
            self.keys.append(key)
            return
        parent = self.tree.insert(key, lambda other: _compare(key, other))
        self.keys.insert(self.keys.index(parent.key) + 1 if parent else 0, key)
        self._root_to_front()

    def _root_to_front(self) -> None:
        if self.tree is not None and self.tree.root is not None:
            root = self.tree.root.key
            self.keys.remove(root)
            self.keys.insert(0, root)


class _Table(Generic[K]):
    """The map, filled key by key."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._count = 0
        self._buckets: dict[int, _Bucket[K]] = {}

    def filled(self, keys: Sequence[Hashed[K]]) -> list[K]:
        for key in keys:
            self._add(key)
        return [key for index in sorted(self._buckets) for _, key in self._buckets[index].keys]

    def _add(self, key: Hashed[K]) -> None:
        bucket = self._buckets.setdefault(key[0] & self._size - 1, _Bucket([]))
        bucket.add(key)
        if bucket.tree is None and len(bucket.keys) > _LONGEST_LIST:
            if self._size < _SMALLEST_WITH_TREES:
                self._double()
            else:
                bucket.make_tree()
        self._count += 1
        if self._count > self._size * 3 // 4:
            self._double()

    def _double(self) -> None:
        old, self._buckets = self._buckets, {}
        for index, bucket in old.items():
            low = [key for key in bucket.keys if not key[0] & self._size]
            high = [key for key in bucket.keys if key[0] & self._size]
            for position, keys, others in ((index, low, high), (index + self._size, high, low)):
                if keys:
                    self._buckets[position] = self._moved(bucket, keys, is_whole=not others)
        self._size *= 2

    def _moved(self, bucket: _Bucket[K], keys: list[Hashed[K]], *, is_whole: bool) -> _Bucket[K]:
        if bucket.tree is None or len(keys) < _SMALLEST_TREE:
            return _Bucket(keys)
        if is_whole:
            return bucket
        moved = _Bucket(keys)
        moved.make_tree()
        return moved


def _compare(one: Hashed[K], other: Hashed[K]) -> int:
    """Compare like `TreeNode`: hashes as signed ints, then comparable keys, else the order of insertion."""
    (code, key), (other_code, other_key) = one, other
    if code != other_code:
        return -1 if _signed(code) < _signed(other_code) else 1
    if isinstance(key, str) and isinstance(other_key, str):
        return -1 if key < other_key else 1
    return 1


def _signed(code: int) -> int:
    return code - (1 << 32) if code >> 31 else code
