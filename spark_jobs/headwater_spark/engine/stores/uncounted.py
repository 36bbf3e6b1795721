"""What a batch did with the entries of a store while its record cache has room: to count them later."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater_spark.engine.records import Context
from headwater_spark.engine.stores.record_cache import ENTRY_BYTES, StoreEntries, cached_size

UNWRITTEN = b"\0unwritten"  # compared by identity


@attrs.frozen(eq=False)
class KeyRange:
    """Some entries of one key, which an iterator reads in this order or in reverse.

    `entry_keys` may grow until they are needed.
    """

    entry_keys: list[bytes]
    first: bytes
    last: bytes
    forward: bool = True

    def reversed(self) -> "KeyRange":
        return attrs.evolve(self, forward=not self.forward)

    def read(self) -> list[bytes]:
        """Return the entry keys in the order of the iterator."""
        return self._ordered(self.entry_keys[self._in(self.entry_keys)])

    def take(self, entry_keys: list[bytes]) -> list[bytes]:
        """Remove the entries from a copy of `entry_keys`; return them in the order of the iterator."""
        found = self._in(entry_keys)
        taken = entry_keys[found]
        del entry_keys[found]
        return self._ordered(taken)

    def _in(self, entry_keys: list[bytes]) -> slice:
        first = bisect_left(entry_keys, self.first)
        return slice(first, bisect_right(entry_keys, self.last, first))

    def _ordered(self, entry_keys: list[bytes]) -> list[bytes]:
        return entry_keys if self.forward else entry_keys[::-1]


@attrs.define
class _Flushed:
    keys: Sequence[bytes]
    contexts: Sequence[Context]
    deleted: Sequence[bytes] = ()


class UncountedEntries:
    """The entries of a store in the order of their uses; the hot path writes all public attributes.

    Attributes:
        contexts: Key → context of its latest update that was not flushed yet.
        writes: The keys of all updates, in order.
        reads: The keys of all reads, in order; of an iterator, all of them at once.
        positions: For each read, the number of writes before it.
        kept: The values that were read from below, and became entries without an update.
    """

    __slots__ = ("_first", "_flushed", "_written", "contexts", "kept", "positions", "reads", "writes")

    def __init__(self, written: Mapping[bytes, bytes | None]) -> None:
        self._written = written
        self._flushed: list[_Flushed] = []
        self._first = 0
        self.contexts: dict[bytes, Context] = {}
        self.writes: list[bytes] = []
        self.reads: list[bytes | KeyRange] = []
        self.positions: list[int] = []
        self.kept: dict[bytes, bytes] = {}

    def take_updates(self) -> tuple[list[bytes], list[Context]]:
        """Remove and return the updates to flush: keys in the order of the latest updates, and contexts."""
        keys = self._updated()
        contexts = list(map(self.contexts.__getitem__, keys))
        self.contexts.clear()
        self._first = len(self.writes)
        self._flushed.append(_Flushed(keys, contexts))
        return keys, contexts

    def remove(self, deleted: Sequence[bytes]) -> None:
        """Remove entries whose deletion was just flushed; they have no new update."""
        self._flushed[-1].deleted = deleted

    def bytes_of_entries(self) -> int:
        """Return the bytes of all entries; forget uses that later ones have replaced."""
        sizes = dict(self._sizes())
        self.writes[:] = self._updated()
        self._first = 0
        self.reads[:] = sizes
        self.positions[:] = [len(self.writes)] * len(sizes)
        return sum(sizes.values())

    def move_to(self, entries: StoreEntries) -> int:
        """Count the entries; return the number of their bytes."""
        sizes = dict(self._sizes())
        entries.sizes.update(sizes)
        entries.updates.update((key, self.contexts[key]) for key in self._updated())
        self.clear()
        return sum(sizes.values())

    def clear(self) -> None:
        for each in (self.contexts, self.writes, self.reads, self.positions, self.kept, self._flushed):
            each.clear()
        self._first = 0

    def _updated(self) -> list[bytes]:
        """Return the keys of `contexts` in the order of their latest updates."""
        keys = self.writes[self._first :]
        if len(keys) == len(self.contexts):
            return keys
        latest = [key for key in dict.fromkeys(reversed(keys)) if key in self.contexts]
        latest.reverse()
        return latest

    def _sizes(self) -> Iterator[tuple[bytes, int]]:
        """Yield each entry's key and bytes, the least recently used first."""
        contexts: dict[bytes, Context] = {}
        for flushed in self._flushed:
            contexts.update(zip(flushed.keys, flushed.contexts, strict=True))
            for key in flushed.deleted:
                del contexts[key]
        contexts |= self.contexts
        for key in self._last_uses():
            context = contexts.get(key)
            value = self._written.get(key, UNWRITTEN)
            if context is not None:
                yield key, cached_size(key, value, context)
            elif value is UNWRITTEN and key in self.kept:
                yield key, ENTRY_BYTES + len(key) + len(self.kept[key])

    def _last_uses(self) -> list[bytes]:
        """Return each key once, in the order of the last uses.

        From the last use back, so an entry of a range is taken from it once, however many ranges contain it.
        """
        found: dict[bytes, None] = {}
        unused: dict[int, list[bytes]] = {}
        for use in reversed(self._uses()):
            if isinstance(use, KeyRange):
                rest = unused.get(id(use.entry_keys))
                if rest is None:
                    rest = unused[id(use.entry_keys)] = use.entry_keys.copy()
                for key in reversed(use.take(rest)):
                    found.setdefault(key)
            else:
                found.setdefault(use)
        return list(reversed(found))

    def _uses(self) -> list[bytes | KeyRange]:
        """Return the keys of reads and writes in their order."""
        uses: list[bytes | KeyRange] = []
        first = 0
        for position, key in zip(self.positions, self.reads, strict=True):
            uses += self.writes[first:position]
            uses.append(key)
            first = position
        return uses + self.writes[first:]
