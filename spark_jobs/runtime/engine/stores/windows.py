"""Window stores, plain and timestamped, with or without duplicates (`RocksDBWindowStore`).

A key in the store is `segment(8) ‖ key ‖ start(8) ‖ sequence(4)`; without the segment it is the changelog's.
Segments make whole ranges of time expire at once and give iteration over several keys Kafka Streams' order:
by segment, then key, then time.
"""

from collections.abc import Callable, Iterator

from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Context, Value, ValueAndTimestamp, Windowed
from spark_jobs.runtime.engine.stores.key_index import KeyIndex
from spark_jobs.runtime.engine.stores.layers import TIMESTAMP, StoreBytes, read_timestamp, with_timestamp
from spark_jobs.runtime.engine.stores.segments import SEGMENT, Segments
from spark_jobs.runtime.engine.stores.time_index import TimeIndex

_START = 8
_SEQUENCE = 4
_TAIL = _START + _SEQUENCE
_SEQUENCES = 0x7FFFFFFF
_LAST_TIME = 2**63 - 1
_FEW_STARTS = 4096


class WindowBytes:
    """`WindowStore`; `size_ms` is the windows' length, which keys of iterations carry.

    Args:
        observed: The largest start ever put; `retention_ms` behind it nothing is seen.
        sequence: Counts the entries of a store with duplicates; None = without.
        nulls_move_time: With duplicates, whether a null counts as seen (in-memory stores).
        emits_on_close: Kafka Streams then takes another store, which shows one millisecond more.
        ordered_by_key: It does not, for a supplier has given it one.
        shows_all_closed: What expired in the running batch is still emitted, as from Kafka Streams' cache.
    """

    def __init__(
        self,
        below: StoreBytes,
        key: Serde,
        value: Serde,
        context: Callable[[], Context],
        *,
        retention_ms: int,
        size_ms: int,
        observed: Clock,
        sequence: Clock | None = None,
        nulls_move_time: bool = False,
        emits_on_close: bool = False,
        ordered_by_key: bool = False,
        shows_all_closed: bool = False,
    ) -> None:
        self.below = below
        self.key_serde = key
        self.value_serde = value
        self.segments = Segments(retention_ms)
        self.observed = observed
        self._sequence = sequence
        self._seen = retention_ms if emits_on_close and not ordered_by_key else retention_ms - 1
        self._ordered_by_key = ordered_by_key
        self._size = size_ms
        self._nulls_move_time = nulls_move_time
        self._shows_all_closed = shows_all_closed
        self._by_time = TimeIndex(below.lowest, self.segments, _TAIL) if emits_on_close else None
        self._edges: dict[int, tuple[bytes, bytes]] = {}
        self._index = KeyIndex(below.overlay, self.segments, _TAIL)
        self._context = context

    def put(self, key: Value, value: Value, start: int, context: Context | None = None) -> None:
        """`context` is given by operators; users' puts take what is being worked on."""
        stored = None if value is None else self._encode(value)
        self.put_bytes(self.key_serde.serialize(key), stored, start, context or self._context())

    def put_bytes(self, key: bytes, value: bytes | None, start: int, context: Context) -> None:
        sequence = 0
        if self._sequence is not None:
            sequence = self._sequence.now = (max(self._sequence.now, 0) + 1) & _SEQUENCES
            if value is None:
                self._put_nothing(key, start, sequence, context)
                return
        self.observed.now = max(self.observed.now, start)
        place = self.place(key, start, sequence)
        self._index.add(key, place)
        if self._by_time is not None:
            self._by_time.put(place, is_there=value is not None)
        self.below.put(place, value, context)

    def _put_nothing(self, key: bytes, start: int, sequence: int, context: Context) -> None:
        """There is nothing that a null could delete where duplicates are kept; it is logged all the same."""
        if self._nulls_move_time:
            self.observed.now = max(self.observed.now, start)
        self.below.put(self.place(key, start, sequence), None, context)

    def fetch(self, key: Value, start: int) -> Value:
        stored = self.fetch_bytes(self.key_serde.serialize(key), start)
        return None if stored is None else self._decode(stored)

    def fetch_bytes(self, key: bytes, start: int) -> bytes | None:
        if start < self.observed.now - self._seen:
            return None
        return self.below.overlay.get(self.place(key, start))

    def fetch_range(self, key: Value, first: int, last: int) -> Iterator[tuple[int, Value]]:
        decode = self._decode
        return ((start, decode(value)) for start, value in self._of_key(key, first, last))

    def backward_fetch_range(self, key: Value, first: int, last: int) -> Iterator[tuple[int, Value]]:
        decode = self._decode
        return ((start, decode(value)) for start, value in self._of_key(key, first, last, forward=False))

    def fetch_keys(
        self,
        first_key: Value,
        last_key: Value,
        first: int,
        last: int,
    ) -> Iterator[tuple[Windowed, Value]]:
        low = b"" if first_key is None else self.key_serde.serialize(first_key)
        high = None if last_key is None else self.key_serde.serialize(last_key)
        return (
            entry
            for key, entry in self._of_times(self._visible(first), last)
            if key >= low and (high is None or key <= high)
        )

    def fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]:
        return (entry for _, entry in self._of_times(self._visible(first), last))

    def backward_fetch_all(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]:
        return (entry for _, entry in self._of_times(self._visible(first), last, forward=False))

    def closed(self, first: int, last: int) -> Iterator[tuple[Windowed, Value]]:
        """What emission on close sees: by start and the key's bytes, or in the order of the store itself."""
        if self._by_time is None:
            raise TypeError("a store that is not emitted on close")
        first = first if self._shows_all_closed else self._visible(first)
        found = list(self._by_time.between(first, last))
        for place, value in sorted(found) if self._ordered_by_key else found:
            start = int.from_bytes(place[-_TAIL:-_SEQUENCE], "big")
            key = self.key_serde.deserialize(place[SEGMENT:-_TAIL])
            yield Windowed(key, start, start + self._size), self._decode(value)

    def all(self) -> Iterator[tuple[Windowed, Value]]:
        return self.fetch_all(0, _LAST_TIME)

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Takes one record of the changelog in, its value led by the timestamp if the store's are."""
        start = int.from_bytes(key[-_TAIL:-_SEQUENCE], "big")
        self.observed.now = max(self.observed.now, start)
        place = self.segments.id(start) + key
        if self._by_time is not None:
            self._by_time.put(place, is_there=value is not None)
        self.below.lowest.written[place] = value

    def expire(self) -> None:
        """Takes the segments out that nothing can be seen of; at the end of a batch."""
        self._index.clear()
        self.segments.expire(self.below.lowest, self.observed.now)
        if self._by_time is not None:
            self._by_time.expire(self.segments.first_live(self.observed.now))

    def place(self, key: bytes, start: int, sequence: int = 0) -> bytes:
        """Where an entry lies in the store."""
        edges = self._edges.get(start)
        if edges is None:
            if len(self._edges) >= _FEW_STARTS:
                self._edges.clear()
            edges = self._edges[start] = self.segments.id(start), start.to_bytes(_START, "big")
        return edges[0] + key + edges[1] + sequence.to_bytes(_SEQUENCE, "big")

    def _of_key(
        self, key: Value, first: int, last: int, *, forward: bool = True
    ) -> Iterator[tuple[int, bytes]]:
        first, last = self._visible(first), min(last, _LAST_TIME)
        get = self.below.overlay.get
        low = first.to_bytes(_START, "big")
        high = last.to_bytes(_START, "big") + b"\xff" * _SEQUENCE
        times = self._visible(0), self.observed.now
        found = self._index.places(self.key_serde.serialize(key), low, high, times)
        for place in found if forward else reversed(found):
            value = get(place)
            if value is not None:
                yield int.from_bytes(place[-_TAIL:-_SEQUENCE], "big"), value

    def _of_times(
        self, first: int, last: int, *, forward: bool = True
    ) -> Iterator[tuple[bytes, tuple[Windowed, Value]]]:
        """`first` and later: callers leave out what is not to be seen."""
        last = min(last, _LAST_TIME)
        overlay = self.below.overlay
        read = overlay.range if forward else overlay.reverse_range
        deserialize = self.key_serde.deserialize
        bounds = self.segments.bounds(first, last)
        for place, value in read(*bounds):
            start = int.from_bytes(place[-_TAIL:-_SEQUENCE], "big")
            if first <= start <= last:
                key = place[SEGMENT:-_TAIL]
                yield key, (Windowed(deserialize(key), start, start + self._size), self._decode(value))

    def _visible(self, first: int) -> int:
        return max(first, self.observed.now - self._seen, 0)

    def _encode(self, value: Value) -> bytes:
        return self.value_serde.serialize(value)

    def _decode(self, stored: bytes) -> Value:
        return self.value_serde.deserialize(stored)


class TimestampedWindowBytes(WindowBytes):
    """`TimestampedWindowStore`: values are (value, timestamp); a pair of (None, t) deletes."""

    def put(
        self, key: Value, value: tuple[Value, int] | None, start: int, context: Context | None = None
    ) -> None:
        super().put(key, None if value is None or value[0] is None else value, start, context)

    def _encode(self, value: tuple[Value, int]) -> bytes:
        return with_timestamp(self.value_serde.serialize(value[0]), value[1])

    def _decode(self, stored: bytes) -> ValueAndTimestamp:
        return ValueAndTimestamp(self.value_serde.deserialize(stored[TIMESTAMP:]), read_timestamp(stored))
