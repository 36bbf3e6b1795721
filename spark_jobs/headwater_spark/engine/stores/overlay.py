"""The writes of a batch over the committed store, and what it reads of the store, once per batch.

`Overlay` reads each key once, `EntryOrder` the keys of a range of which the first is read and removed again
and again, `BatchValues` the values of a key of a window store with duplicates.
"""

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heappop, heappush
from itertools import islice

from sortedcontainers import SortedList  # type: ignore[import-untyped]

from headwater_spark.engine.stores.interfaces import Pair, SortedReads

Changes = Mapping[str, Mapping[bytes, bytes | None]]
"""Store → key → value that a batch wrote; None = deleted."""

_FIRST_CHUNK = 8
_UNREAD = b"\0unread"  # compared by identity

_LARGEST_CHUNK = 1024
_NOT_WRITTEN = b""

_SEQUENCE_BITS = 31
_LAST_SEQUENCE = 2**_SEQUENCE_BITS - 1
_TIME_AND_SEQUENCE_BYTES = 12
_SEQUENCE_BYTES = 4

StoredValues = Callable[[bytes], Iterable[Pair]]
"""Key → its entries in the store that may be visible, in order."""
_Values = tuple[list[int], list[bytes]]
"""Times with sequence numbers, and values."""


class Overlay:
    """`OrderedBytes` that keeps writes in memory and reads other keys from `base`.

    `written` (None = deleted) is public: operators on the hot path read it before they call `get`. It is
    always the same object. `batch` counts the batches that have ended.
    """

    __slots__ = ("_base", "_order", "_ordered", "_read", "batch", "get", "written")

    def __init__(self, base: SortedReads) -> None:
        self._base = base
        self.batch = 0
        self.written: dict[bytes, bytes | None] = {}
        self._read: dict[bytes, bytes | None] = {}
        self._order: SortedList[bytes] = SortedList()
        self._ordered = 0
        self.get: Callable[[bytes], bytes | None] = _make_getter(self.written, self._read, base)

    def put(self, key: bytes, value: bytes) -> None:
        self.written[key] = value

    def delete(self, key: bytes) -> None:
        self.written[key] = None

    def range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        if not self.written:
            return self._base.range(start, end)
        changed = self._changed(start, end)
        return self._merged(self._base.range(start, end), changed, forward=True)

    def reverse_range(self, start: bytes = b"", end: bytes | None = None) -> Iterator[Pair]:
        if not self.written:
            return self._base.reverse_range(start, end)
        changed = self._changed(start, end, reverse=True)
        return self._merged(self._base.reverse_range(start, end), changed, forward=False)

    def committed_range(self, start: bytes, end: bytes) -> Iterator[Pair]:
        """Yield the entries as of the latest batch, without the writes of the running one."""
        return self._base.range(start, end)

    def clear(self) -> None:
        """Forget the batch: its writes are in `base` now, or rolled back."""
        self.batch += 1
        self.written.clear()
        self._read.clear()
        self._order.clear()
        self._ordered = 0

    def _changed(self, start: bytes, end: bytes | None, *, reverse: bool = False) -> Iterator[bytes]:
        """Yield written keys in order, a few at a time, as the caller may write between two of them.

        Keys are never removed from `written`, so its last keys are those that are not in `_order` yet.
        """
        new = len(self.written) - self._ordered
        if new:
            self._order.update(list(islice(reversed(self.written), new)))
            self._ordered += new
        chunk = _FIRST_CHUNK
        while chunk:
            found = list(islice(self._order.irange(start, end, (True, False), reverse=reverse), chunk))
            yield from found
            if len(found) < chunk:
                return
            start, end = (start, found[-1]) if reverse else (found[-1] + b"\0", end)
            chunk *= 2

    def _merged(self, below: Iterator[Pair], changed: Iterator[bytes], *, forward: bool) -> Iterator[Pair]:
        pair = next(below, None)
        key = next(changed, None)
        while pair is not None or key is not None:
            if key is None or (pair is not None and pair[0] != key and (pair[0] < key) is forward):
                assert pair is not None  # noqa: S101 - one of the two is there
                yield pair
                pair = next(below, None)
                continue
            if pair is not None and pair[0] == key:
                pair = next(below, None)
            value = self.written[key]
            if value is not None:
                yield key, value
            key = next(changed, None)


def _make_getter(
    written: dict[bytes, bytes | None], known: dict[bytes, bytes | None], base: SortedReads
) -> Callable[[bytes], bytes | None]:
    """Return a function that reads a key; it is called for nearly every record."""
    get_written, get_known, get_base = written.get, known.get, base.get

    def get(key: bytes) -> bytes | None:
        value = get_written(key, _UNREAD)
        if value is _UNREAD:
            value = get_known(key, _UNREAD)
            if value is _UNREAD:
                value = known[key] = get_base(key)
        return value

    return get


class EntryOrder:
    """Finds the first key of a range in a store, faster than `Overlay.range`.

    Committed keys are read once in a batch, a few at a time, as no write changes them. Keys of the batch are
    on a heap. Both may contain keys that the batch has deleted; these are skipped when they are the first.
    """

    def __init__(self, overlay: Overlay, start: bytes, end: bytes) -> None:
        self._overlay = overlay
        self._batch = overlay.batch
        self._written = overlay.written
        self._start = start
        self._end = end
        self._heap: list[bytes] = []
        self._committed: deque[bytes] = deque()
        self._next: bytes | None = start
        self._chunk = _FIRST_CHUNK

    def add(self, key: bytes) -> None:
        """Add a key that the batch writes."""
        if self._batch != self._overlay.batch:
            self._begin_batch()
        heappush(self._heap, key)

    def first(self) -> bytes | None:
        """Return the first key that is not deleted, None = there is none."""
        if self._batch != self._overlay.batch:
            self._begin_batch()
        written, heap = self._written, self._heap
        while heap and written[heap[0]] is None:
            heappop(heap)
        committed = self._first_committed()
        if committed is None or (heap and heap[0] < committed):
            return heap[0] if heap else None
        return committed

    def _begin_batch(self) -> None:
        """Forget the batch before: its keys are committed, or rolled back."""
        self._batch = self._overlay.batch
        self._heap.clear()
        self._committed.clear()
        self._next = self._start
        self._chunk = _FIRST_CHUNK

    def _first_committed(self) -> bytes | None:
        written, committed = self._written, self._committed
        while True:
            while committed and written.get(committed[0], _NOT_WRITTEN) is None:
                committed.popleft()
            if committed or self._next is None:
                return committed[0] if committed else None
            pairs = islice(self._overlay.committed_range(self._next, self._end), self._chunk)
            committed.extend(key for key, _ in pairs)
            self._next = committed[-1] + b"\0" if len(committed) == self._chunk else None
            self._chunk = min(2 * self._chunk, _LARGEST_CHUNK)


class BatchValues:
    """Finds the values of a key in a range of time. A key is read from the store once in a batch.

    Entries that expire meanwhile remain here; callers search for visible times only.
    """

    __slots__ = ("_of_keys", "_stored")

    def __init__(self, stored: StoredValues) -> None:
        self._stored = stored
        self._of_keys: dict[bytes, _Values] = {}

    def add(self, key: bytes, time: int, sequence: int, value: bytes) -> None:
        """Register a value that is written."""
        known = self._of_keys.get(key)
        if known is None:
            return
        orders, values = known
        order = time << _SEQUENCE_BITS | sequence
        if not orders or order > orders[-1]:
            orders.append(order)
            values.append(value)
        else:
            at = bisect_left(orders, order)
            orders.insert(at, order)
            values.insert(at, value)

    def find(self, key: bytes, first: int, last: int) -> Iterable[tuple[int, bytes]]:
        """Return (time, value) of the values from time `first` to `last`, as of now."""
        known = self._of_keys.get(key)
        orders, values = known if known is not None else self._read(key)
        begin = bisect_left(orders, first << _SEQUENCE_BITS)
        end = bisect_right(orders, last << _SEQUENCE_BITS | _LAST_SEQUENCE, begin)
        if begin == end:
            return ()
        return _times_and_values(orders[begin:end], values[begin:end])

    def clear(self) -> None:
        self._of_keys.clear()

    def _read(self, key: bytes) -> _Values:
        orders: list[int] = []
        values: list[bytes] = []
        for entry_key, value in self._stored(key):
            time = int.from_bytes(entry_key[-_TIME_AND_SEQUENCE_BYTES:-_SEQUENCE_BYTES], "big")
            sequence = int.from_bytes(entry_key[-_SEQUENCE_BYTES:], "big")
            orders.append(time << _SEQUENCE_BITS | sequence)
            values.append(value)
        self._of_keys[key] = orders, values
        return orders, values


def _times_and_values(orders: list[int], values: list[bytes]) -> Iterator[tuple[int, bytes]]:
    for order, value in zip(orders, values, strict=True):
        yield order >> _SEQUENCE_BITS, value
