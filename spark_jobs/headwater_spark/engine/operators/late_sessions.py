"""Sessions of keys with late records, within a batch that is counted in columns (`counted_sessions`).

These keys are processed record by record, by the rule of single records (`cached_sessions`). Their entries
share the record cache with the entries of all other keys, which are only numbers. A late record reads entries
that it does not write. Such an entry may have been flushed before, and is used later than updates that were
not: then its bytes count, too, until the cache is full. Of other keys, no entry is used without an update.

A record uses all later entries of its key at once. So only the rows of uses are kept; the order of entries is
computed when it matters: when the cache is full.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Container, Iterator
from typing import Final

import attrs
import numpy as np

from headwater_spark.engine.operators.cached_sessions import KeySessions, SessionsOfKeys
from headwater_spark.engine.records import Clock, Context
from headwater_spark.engine.session_columns import NONE, SessionUpdates
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES
from headwater_spark.engine.stores.segments import SEGMENT, TIME
from headwater_spark.engine.stores.windows import SessionBytes
from headwater_spark.engine.window_columns import Numbers

_NEVER: Final = 2**62
_KEY_END: Final = -2 * TIME
_NO_UPDATE: Final = (NONE, b"")

_Use = tuple[int, int, bytes]
"""(row, 1 for an update, order within the row)"""


@attrs.frozen(eq=False)
class _FlushedEntries:
    """The entries that were in the cache after the last flush, in the order of their last uses.

    `until` has the row that replaces each. `at` are the positions of the entries of keys with late records;
    once used again, they have 0 bytes here. `newer` are the bytes of each entry and of all later ones, before
    any was used again.
    """

    sizes: Numbers
    newer: Numbers
    until: Numbers
    at: dict[bytes, int]

    def remove(self, entry_key: bytes) -> int:
        """Remove an entry of a key with late records; return its bytes."""
        at = self.at.pop(entry_key)
        size, self.sizes[at] = int(self.sizes[at]), 0
        return size

    def have_room(self, position: int, room: int, row: int) -> bool:
        """Return whether an entry fits into `room` bytes, with all later ones that were not used again."""
        if self.newer[position] <= room:
            return True
        return int(self.sizes[position:][self.until[position:] > row].sum()) <= room


_NO_NUMBERS: Final = np.empty(0, np.int64)
_NONE_FLUSHED: Final = _FlushedEntries(_NO_NUMBERS, _NO_NUMBERS, _NO_NUMBERS, {})


class LateSessions(SessionsOfKeys):
    """The sessions of keys with late records in a batch.

    `row` is the row that is processed, `others` the bytes of the updates of all other keys since the last
    flush. `bytes` are the bytes of the entries that were used since then. `make_room` is called with
    the row while both exceed the bound.
    """

    def __init__(
        self,
        store: SessionBytes,
        cached: Cached,
        observed: Clock,
        drop: Callable[[str, str], None],
        *,
        topic: str,
        make_room: Callable[[int], None],
    ) -> None:
        super().__init__(store, cached, observed, drop)
        self.put = self._put
        self.row = self.others = self.bytes = 0
        self._context_bytes = ENTRY_BYTES + len(topic)
        self._make_room = make_room
        self._sizes: dict[bytes, int] = {}
        """The bytes of each entry that was used since the last flush."""
        self._updates: dict[bytes, tuple[int, bytes | None]] = {}
        """Entry → (row, value), in the order of the updates."""
        self._touches: dict[bytes, _Touches] = {}
        """Key → which of its entries were used without an update, since the last flush."""
        self._evicted: list[tuple[int, bytes, bytes | None]] = []
        """(row, entry key, value) of the update that has left the cache."""
        self._flushed = _NONE_FLUSHED
        self._cached_keys = _CachedKeys(self)

    def cached_keys(self) -> Container[bytes]:
        return self._cached_keys

    def is_cached(self, entry_key: bytes) -> bool:
        """Return whether an entry is in the cache."""
        if entry_key in self._sizes:
            return True
        at = self._flushed.at.get(entry_key)
        if at is None:
            return False
        room = self.cached.cache.bound - self.others - self.bytes
        return self._flushed.have_room(at, room, self.row)

    def touch_range(self, known: KeySessions, first: int) -> None:
        if not known.all_keys:
            return
        key = known.all_keys[0][SEGMENT:_KEY_END]
        touches = self._touches.get(key)
        if touches is None:
            touches = self._touches[key] = _Touches()
        touches.add(self.row, first)
        if self._flushed.at:  # sessions that were deleted before the last flush are not among them
            for session in known.sessions[bisect_left(known.times, first) :]:
                if session.entry_key in self._flushed.at:
                    self._use_flushed(session.entry_key)

    def oldest(self) -> tuple[int, bytes] | None:
        """Return the entry that was not used for the longest time: (row of its last use, entry key)."""
        if not self._sizes:
            return None
        use, entry_key = min(self._last_uses())
        return use[0], entry_key

    def evict(self, entry_key: bytes) -> bool:
        """Remove the oldest entry; return whether it has an update.

        If it has none, all entries that were used before have left the cache.
        """
        self.bytes -= self._sizes.pop(entry_key)
        update = self._updates.pop(entry_key, None)
        if update is None:
            self._flushed = _NONE_FLUSHED
            return False
        self._evicted = [(update[0], entry_key, update[1])]
        return True

    def merge_updates(
        self, others: SessionUpdates, keys: list[bytes], values: list[bytes | None]
    ) -> tuple[Numbers, list[bytes], list[bytes | None]]:
        """Return rows, entry keys and values of all updates: of `others`, and of keys with late records.

        They are in the order of rows, but the entry that has left the cache is the first one.
        """
        own = self._evicted + [(row, entry_key, value) for entry_key, (row, value) in self._updates.items()]
        rows = np.concatenate((others.rows, np.array([row for row, _, _ in own], np.int64)))
        ranks = rows.copy()
        ranks[: others.evicted] = NONE
        ranks[len(keys) : len(keys) + len(self._evicted)] = NONE
        order = np.argsort(ranks, kind="stable")
        keys = [*keys, *(entry_key for _, entry_key, _ in own)]
        values = [*values, *(value for _, _, value in own)]
        return rows[order], [keys[at] for at in order.tolist()], [values[at] for at in order.tolist()]

    def note_flush(self, rows: Numbers, sizes: Numbers, until: Numbers) -> None:
        """Note that all updates were flushed, and which entries are in the cache now.

        Of other keys, these are the entries that `rows` have put, with their bytes, until the given rows.
        """
        own = [
            use for use in sorted(self._last_uses()) if self._updates.get(use[1], _NO_UPDATE)[1] is not None
        ]
        every = np.concatenate((rows, np.array([use[0] for use, _ in own], np.int64)))
        order = np.argsort(every, kind="stable")
        at = np.empty_like(order)
        at[order] = np.arange(len(order))
        bytes_of = np.array([self._sizes[entry_key] for _, entry_key in own], np.int64)
        bytes_of = np.concatenate((sizes, bytes_of))[order]
        self._flushed = _FlushedEntries(
            bytes_of,
            np.cumsum(bytes_of[::-1])[::-1],
            np.concatenate((until, np.full(len(own), _NEVER)))[order],
            dict(zip((entry_key for _, entry_key in own), at[len(rows) :].tolist(), strict=True)),
        )
        self._sizes.clear()
        self._updates.clear()
        self._touches.clear()
        self._evicted.clear()
        self.bytes = self.others = 0

    def _put(self, entry_key: bytes, value: bytes | None, _context: Context) -> None:
        size = self._context_bytes + len(entry_key) + (0 if value is None else len(value))
        if entry_key in self._flushed.at:
            self._flushed.remove(entry_key)
        self.bytes += size - self._sizes.get(entry_key, 0)
        self._sizes[entry_key] = size
        self._updates.pop(entry_key, None)
        self._updates[entry_key] = self.row, value
        while self.others + self.bytes > self.cached.cache.bound:
            self._make_room(self.row)

    def _use_flushed(self, entry_key: bytes) -> None:
        is_cached = self.is_cached(entry_key)
        size = self._flushed.remove(entry_key)
        if is_cached:
            self._sizes[entry_key] = size
            self.bytes += size

    def _last_uses(self) -> Iterator[tuple[_Use, bytes]]:
        """Yield the last use of each entry, and its key. Uses of a row are in their order."""
        for number, (entry_key, (row, _)) in enumerate(self._updates.items()):
            touched = self._touched(entry_key)
            yield (
                (touched, 0, _times(entry_key)) if touched > row else (row, 1, number.to_bytes(TIME, "big")),
                entry_key,
            )
        for entry_key in self._sizes.keys() - self._updates.keys():
            yield (self._touched(entry_key), 0, _times(entry_key)), entry_key

    def _touched(self, entry_key: bytes) -> int:
        touches = self._touches.get(entry_key[SEGMENT:_KEY_END])
        return NONE if touches is None else touches.last(int.from_bytes(entry_key[_KEY_END:-TIME], "big"))


class _Touches:
    """Rows that have used all entries of a key from a time on, without those that later rows repeat."""

    __slots__ = ("_firsts", "_rows")

    def __init__(self) -> None:
        self._rows: list[int] = []
        self._firsts: list[int] = []

    def add(self, row: int, first: int) -> None:
        rows, firsts = self._rows, self._firsts
        while firsts and firsts[-1] >= first:
            firsts.pop()
            rows.pop()
        rows.append(row)
        firsts.append(first)

    def last(self, time: int) -> int:
        """Return the last row that has used an entry of `time`, or `NONE`."""
        at = bisect_right(self._firsts, time)
        return self._rows[at - 1] if at else NONE


def _times(entry_key: bytes) -> bytes:
    return entry_key[_KEY_END:]


class _CachedKeys(Container[bytes]):
    """The keys of the entries that are in the cache."""

    def __init__(self, sessions: LateSessions) -> None:
        self._sessions = sessions

    def __contains__(self, entry_key: object) -> bool:
        return isinstance(entry_key, bytes) and self._sessions.is_cached(entry_key)
