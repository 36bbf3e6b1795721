"""The writes of a batch over the committed store: per key, a batch reads and writes the store once."""

from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from sortedcontainers import SortedList  # type: ignore[import-untyped]

from headwater_spark.engine.stores.interfaces import Pair, SortedReads

Changes = Mapping[str, Mapping[bytes, bytes | None]]
"""Store → key → value that a batch wrote; None = deleted."""

_FIRST_CHUNK = 8
_UNREAD = b"\0unread"  # compared by identity


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
        self.get: Callable[[bytes], bytes | None] = _getter(self.written, self._read, base)

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


def _getter(
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
