"""The buffer of `suppress` (`InMemoryTimeOrderedKeyValueChangeBuffer`), here in the task's store.

Entries lie under `e ‖ time(8) ‖ key`, and under `i ‖ key` the time of a key's entry. The changelog gets each
changed key once, when the batch ends: the entry followed by its time, in a record with the header `v` = 3.
"""

from collections.abc import Callable

import attrs

from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Headers, Value
from spark_jobs.runtime.engine.stores.buffered import Buffered, deserialize
from spark_jobs.runtime.engine.stores.interfaces import BufferedContext
from spark_jobs.runtime.engine.stores.overlay import Overlay

_TIME = 8
_ENTRY = b"e"
_AFTER_ENTRIES = b"f"
_INDEX = b"i"
_NEVER = 2**63 - 1
_UNWRITTEN = b""
_VERSION: Headers = (("v", b"\3"),)

LogEntry = Callable[[bytes, bytes | None, Headers], None]
"""(key, value, headers) → the changelog."""


@attrs.frozen
class BufferSize:
    """How much is buffered; kept with the task's clocks."""

    records: Clock
    bytes: Clock


class SuppressBytes:
    """`SuppressBuffer`."""

    def __init__(self, overlay: Overlay, key: Serde, value: Serde, log: LogEntry, size: BufferSize) -> None:
        self._overlay = overlay
        self._key = key
        self._value = value
        self._log = log
        self._size = size
        self._changed: dict[bytes, None] = {}
        self._entries: dict[bytes, Buffered] = {}  # of this batch: those that stay are written when it ends
        self._first: bytes | None = None
        self._from = _ENTRY

    @property
    def records(self) -> int:
        return max(self._size.records.now, 0)

    @property
    def size(self) -> int:
        return max(self._size.bytes.now, 0)

    @property
    def min_time(self) -> int:
        """The oldest entry's time; the largest there is where nothing is buffered."""
        first = self._oldest()
        return _NEVER if first is None else _time_of(first)

    def put(self, time: int, key: Value, change: tuple[Value, Value], context: BufferedContext) -> None:
        """`change` is (new, old). A key that is buffered keeps its time and what downstream knows of it."""
        plain = self._key.serialize(key)
        new, old = (None if part is None else self._value.serialize(part) for part in change)
        index = self._overlay.get(_INDEX + plain)
        if index is None:
            place = _ENTRY + time.to_bytes(_TIME, "big") + plain
            entry = Buffered(context, old, old, new)
            self._count(1, _estimate(plain, entry))
        else:
            place = _ENTRY + index + plain
            before = self._at(place)
            entry = Buffered(context, before.prior, old, new)
            self._count(0, _estimate(plain, entry) - _estimate(plain, before))
        self._keep(place, plain, entry)
        self._changed[plain] = None

    def prior(self, key: Value) -> tuple[Value, int] | bool | None:
        plain = self._key.serialize(key)
        index = self._overlay.get(_INDEX + plain)
        if index is None:
            return False
        known = self._at(_ENTRY + index + plain).prior
        return None if known is None else (self._value.deserialize(known), -1)

    def oldest(self) -> tuple[Value, tuple[Value, Value], BufferedContext]:
        """Raises LookupError where nothing is buffered."""
        place = self._place_of_oldest()
        entry = self._at(place)
        new, old = (
            None if part is None else self._value.deserialize(part) for part in (entry.new, entry.old)
        )
        return self._key.deserialize(place[1 + _TIME :]), (new, old), entry.context

    def drop_oldest(self) -> None:
        """Raises LookupError where nothing is buffered."""
        place = self._place_of_oldest()
        plain = place[1 + _TIME :]
        self._remove(place, plain, self._at(place))
        self._changed[plain] = None

    def _place_of_oldest(self) -> bytes:
        place = self._oldest()
        if place is None:
            raise LookupError("nothing is buffered")
        return place

    def flush(self) -> None:
        """Writes and logs what changed since the last time."""
        for place, entry in self._entries.items():
            self._overlay.put(place, entry.serialize())
        self._entries.clear()
        for plain in self._changed:
            index = self._overlay.get(_INDEX + plain)
            if index is None:
                self._log(plain, None, ())
            else:
                stored = self._overlay.get(_ENTRY + index + plain) or b""
                self._log(plain, stored + index, _VERSION)
        self._changed.clear()

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Takes one record of the changelog in."""
        index = self._overlay.get(_INDEX + key)
        if index is not None:
            self._remove(_ENTRY + index + key, key, self._at(_ENTRY + index + key))
        if value is not None:
            entry = deserialize(value)
            place = _ENTRY + value[-_TIME:] + key
            self._count(1, _estimate(key, entry))
            self._keep(place, key, entry)
            self._overlay.put(place, self._entries.pop(place).serialize())

    def _keep(self, place: bytes, plain: bytes, entry: Buffered) -> None:
        self._entries[place] = entry
        self._overlay.put(place, _UNWRITTEN)
        self._overlay.put(_INDEX + plain, place[1 : 1 + _TIME])
        if self._first is not None and place < self._first:
            self._first = place
        self._from = min(self._from, place)

    def _remove(self, place: bytes, plain: bytes, entry: Buffered) -> None:
        self._entries.pop(place, None)
        self._overlay.delete(place)
        self._overlay.delete(_INDEX + plain)
        self._count(-1, -_estimate(plain, entry))
        if place == self._first:
            self._first, self._from = None, place

    def _at(self, place: bytes) -> Buffered:
        return self._entries.get(place) or deserialize(self._overlay.get(place) or b"")

    def _oldest(self) -> bytes | None:
        """Looked for from the last one taken out: what was deleted before it is not passed again."""
        if self._first is None and self.records:
            found = next(self._overlay.range(self._from, _AFTER_ENTRIES), None)
            self._first = None if found is None else found[0]
        return self._first

    def _count(self, records: int, size: int) -> None:
        self._size.records.now = max(self._size.records.now, 0) + records
        self._size.bytes.now = max(self._size.bytes.now, 0) + size


def _time_of(place: bytes) -> int:
    return int.from_bytes(place[1 : 1 + _TIME], "big")


def _estimate(key: bytes, entry: Buffered) -> int:
    return _TIME + len(key) + entry.estimated_bytes
