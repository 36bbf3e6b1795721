"""The order of the entries of a buffer, whose first one is read and removed again and again."""

from collections import deque
from heapq import heappop, heappush
from itertools import islice

from headwater_spark.engine.stores.overlay import Overlay

_FIRST_CHUNK = 8
_LARGEST_CHUNK = 1024
_NOT_WRITTEN = b""


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
