"""Iteration orders of `java.util.HashMap`, `HashSet` and other collections, and `PriorityQueue`.

A bucket with nine keys doubles a small table and becomes a red-black tree in a larger one. A tree is iterated
in the order of its list, with the root moved to the front. Such collisions occur: names with generated
indices that differ by eleven are often in the same bucket.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
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


Hashed = tuple[int, K]
"""The spread hash and the key."""

SMALLEST_TABLE = 16
_SMALLEST_WITH_TREES = 64
_LONGEST_LIST = 8
_SMALLEST_TREE = 7


def _iteration_order(keys: Sequence[Hashed[K]], table: int = SMALLEST_TABLE) -> list[K]:
    """Return the iteration order after inserting distinct `keys` into an empty map with `table` buckets."""
    if len(keys) == 1:
        return [keys[0][1]]
    size = _grow_table(len(keys), table)
    if _has_long_list(keys, table, size):
        return _Table[K](table).filled(keys)
    return [key for _, key in sorted(keys, key=lambda each: each[0] & size - 1)]


def spread_hash(code: int) -> int:
    """Return `HashMap#hash` of a hash code, unsigned."""
    code &= 0xFFFFFFFF
    return code ^ code >> 16


def _grow_table(count: int, table: int) -> int:
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
            self.tree.insert(key, lambda other, key=key: _compare_hashed(key, other))  # type: ignore[misc]
        self._root_to_front()

    def add(self, key: Hashed[K]) -> None:
        if self.tree is None:
            self.keys.append(key)
            return
        parent = self.tree.insert(key, lambda other: _compare_hashed(key, other))
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
                self._double_buckets()
            else:
                bucket.make_tree()
        self._count += 1
        if self._count > self._size * 3 // 4:
            self._double_buckets()

    def _double_buckets(self) -> None:
        old, self._buckets = self._buckets, {}
        for index, bucket in old.items():
            low = [key for key in bucket.keys if not key[0] & self._size]
            high = [key for key in bucket.keys if key[0] & self._size]
            for position, keys, others in ((index, low, high), (index + self._size, high, low)):
                if keys:
                    self._buckets[position] = self._move_keys(bucket, keys, is_whole=not others)
        self._size *= 2

    def _move_keys(self, bucket: _Bucket[K], keys: list[Hashed[K]], *, is_whole: bool) -> _Bucket[K]:
        if bucket.tree is None or len(keys) < _SMALLEST_TREE:
            return _Bucket(keys)
        if is_whole:
            return bucket
        moved = _Bucket(keys)
        moved.make_tree()
        return moved


def _compare_hashed(one: Hashed[K], other: Hashed[K]) -> int:
    """Compare like `TreeNode`: hashes as signed ints, then comparable keys, else the order of insertion."""
    (code, key), (other_code, other_key) = one, other
    if code != other_code:
        return -1 if signed_int(code) < signed_int(other_code) else 1
    if isinstance(key, str) and isinstance(other_key, str):
        return -1 if string_rank(key) < string_rank(other_key) else 1
    return 1


_MASK = 0xFFFFFFFF


def signed_int(value: int) -> int:
    """Return the low 32 bits as a Java `int`."""
    value &= _MASK
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=1 << 16)
def string_hash(text: str) -> int:
    """Return `String#hashCode`, over UTF-16 code units."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (value * 31 + unit) & _MASK
    else:
        units = text.encode("utf-16-le", "surrogatepass")
        for low, high in zip(units[::2], units[1::2], strict=True):
            value = (value * 31 + (high << 8 | low)) & _MASK
    return signed_int(value)


def string_rank(text: str) -> bytes:
    """Return a value that sorts texts as `String#compareTo`: by UTF-16 code units."""
    return text.encode("utf-16-be", "surrogatepass")


def long_hash(value: int) -> int:
    """Return `Long#hashCode`."""
    value &= 0xFFFFFFFFFFFFFFFF
    return signed_int(value ^ value >> 32)


def set_hash(items: Iterable[str]) -> int:
    """Return `AbstractSet#hashCode` of strings."""
    return signed_int(sum(map(string_hash, items)))


def map_hash(entries: Mapping[str, str]) -> int:
    """Return `AbstractMap#hashCode` of strings to strings."""
    return signed_int(sum(string_hash(key) ^ string_hash(value) for key, value in entries.items()))


def objects_hash(*hashes: int) -> int:
    """Return `Objects.hash` of values with these hash codes."""
    value = 1
    for each in hashes:
        value = (value * 31 + each) & _MASK
    return signed_int(value)


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> tuple[K, ...]:
    """Return the iteration order of a `HashSet` or `HashMap` to which `keys` were added one by one."""
    return tuple(_iteration_order([(spread_hash(hash_of(key)), key) for key in dict.fromkeys(keys)]))


def copy_order(keys: Iterable[K], hash_of: Callable[[K], int], size: int | None = None) -> tuple[K, ...]:
    """Return the order of `new HashSet<>(collection)`; `size` is the collection's with duplicates."""
    hashed = [(spread_hash(hash_of(key)), key) for key in dict.fromkeys(keys)]
    wanted = int((len(hashed) if size is None else size) / 0.75) + 1
    return tuple(_iteration_order(hashed, max(SMALLEST_TABLE, 1 << (wanted - 1).bit_length())))


def string_order_from(capacity: int, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the iteration order of `new HashSet<>(capacity)` to which `keys` were added one by one."""
    hashed = [(spread_hash(string_hash(key)), key) for key in dict.fromkeys(keys)]
    return tuple(_iteration_order(hashed, 1 << max(capacity - 1, 0).bit_length()))


def string_set_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return `hash_order` of strings."""
    return hash_order(keys, string_hash)


def string_copy_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the iteration order of a copy of a `HashSet` of strings to which `keys` were added."""
    return copy_order(string_set_order(keys), string_hash)


class JavaQueue(Generic[K]):
    """Elements in ascending order; equal elements have the order of `java.util.PriorityQueue`."""

    def __init__(self, order: Callable[[K], int]) -> None:
        self._order = order
        self._heap: list[K] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    def offer(self, element: K) -> None:
        heap, order = self._heap, self._order
        heap.append(element)
        at = len(heap) - 1
        while at > 0:
            parent = (at - 1) // 2
            if order(element) >= order(heap[parent]):
                break
            heap[at] = heap[parent]
            at = parent
        heap[at] = element

    def poll(self) -> K:
        heap = self._heap
        first, last = heap[0], heap.pop()
        if heap:
            self._sift_down(last)
        return first

    def _sift_down(self, element: K) -> None:
        heap, order = self._heap, self._order
        at, size = 0, len(heap)
        while at < size // 2:
            child = 2 * at + 1
            if child + 1 < size and order(heap[child]) > order(heap[child + 1]):
                child += 1
            if order(element) <= order(heap[child]):
                break
            heap[at] = heap[child]
            at = child
        heap[at] = element
