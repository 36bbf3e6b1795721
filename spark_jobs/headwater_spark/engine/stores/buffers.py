"""Buffers: of `suppress`, and of joins of a stream with a versioned table with a grace period.

A buffered change is written as in Kafka Streams (`BufferValue`, `ProcessorRecordContext`):

    timestamp(8) offset(8) length(4) topic partition(4) headers(4) [length(4) name length(4) value]...
    length(4) prior   length(4) old   length(4) new

A length of -1 is null; the length -2 of an old value means "the same as prior".
"""

import struct
from collections.abc import Callable, Iterator
from typing import NamedTuple

import attrs

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Clock, Headers, Value
from headwater_spark.engine.stores.overlay import EntryOrder, Overlay

_TIME = 8
_SEQUENCE = 4
_SEQUENCES = 0x7FFFFFFF
_JOIN_ENTRY = b"\0"
_ENTRY = b"e"
_AFTER_ENTRIES = b"f"
_TIME_OF_KEY = b"i"
_NOT_SERIALIZED = b""
_VERSION: Headers = (("v", b"\3"),)
_FIXED = struct.Struct(">qqi")
_INT = struct.Struct(">i")
_NULL = -1
_SAME = -2
_CONTEXT_BYTES = 8 + 8 + 4

BufferedContext = tuple[int, int, str, int, Headers]
"""(timestamp, offset, topic, partition, headers) of the record that caused an entry."""


class Buffered(NamedTuple):
    """A change in bytes. `prior` is the value last emitted, `old` the parent's previous value."""

    context: BufferedContext
    prior: bytes | None
    old: bytes | None
    new: bytes | None

    def serialize(self) -> bytes:
        same = self.old is not None and self.old == self.prior
        old = _INT.pack(_SAME) if same else _pack_nullable(self.old)
        return b"".join(
            (serialize_context(self.context), _pack_nullable(self.prior), old, _pack_nullable(self.new))
        )

    @property
    def estimated_bytes(self) -> int:
        """Return the size as Kafka Streams counts it (`residentMemorySizeEstimate`)."""
        (_, _, topic, _, headers), prior, old, new = self
        size = _CONTEXT_BYTES + len(topic)
        if prior is not None:
            size += len(prior)
        if old is not None and old != prior:
            size += len(old)
        if new is not None:
            size += len(new)
        for name, value in headers:
            size += len(name) + len(value or b"")
        return size


def serialize_context(context: BufferedContext) -> bytes:
    timestamp, offset, topic, partition, headers = context
    name = topic.encode()
    parts = [_FIXED.pack(timestamp, offset, len(name)), name, _INT.pack(partition), _INT.pack(len(headers))]
    for header, value in headers:
        parts += (_pack_nullable(header.encode()), _pack_nullable(value))
    return b"".join(parts)


def deserialize_change(stored: bytes) -> Buffered:
    """Read a change; ignore bytes after it: the changelog has the buffer time there."""
    timestamp, offset, length = _FIXED.unpack_from(stored)
    at = _FIXED.size + length
    topic = stored[_FIXED.size : at].decode()
    (partition,), (count,) = _INT.unpack_from(stored, at), _INT.unpack_from(stored, at + _INT.size)
    at += 2 * _INT.size
    headers: list[tuple[str, bytes | None]] = []
    for _ in range(count):
        name, at = _read_nullable(stored, at)
        value, at = _read_nullable(stored, at)
        headers.append(((name or b"").decode(), value))
    prior, at = _read_nullable(stored, at)
    if _INT.unpack_from(stored, at)[0] == _SAME:
        old, at = prior, at + _INT.size
    else:
        old, at = _read_nullable(stored, at)
    new, at = _read_nullable(stored, at)
    return Buffered((timestamp, offset, topic, partition, tuple(headers)), prior, old, new)


def _pack_nullable(value: bytes | None) -> bytes:
    return _INT.pack(_NULL) if value is None else _INT.pack(len(value)) + value


def _read_nullable(stored: bytes, at: int) -> tuple[bytes | None, int]:
    (length,) = _INT.unpack_from(stored, at)
    at += _INT.size
    return (None, at) if length == _NULL else (stored[at : at + length], at + length)


LogEntry = Callable[[bytes, bytes | None, Headers], None]
"""Appends (key, value, headers) to the changelog topic."""


class JoinBufferBytes:
    """Stream records within the grace period of a stream-table join (`RocksDBTimeOrderedKeyValueBuffer`).

    A key, in store and changelog, is `0 ‖ time(8) ‖ key ‖ sequence(4)` (`TimeFirstWindowKeySchema`).
    `observed` is the largest time ever put, `sequence` counts the records.
    """

    def __init__(
        self,
        overlay: Overlay,
        key: Serde,
        value: Serde,
        log: LogEntry,
        *,
        grace_ms: int,
        observed: Clock,
        sequence: Clock,
    ) -> None:
        self._overlay = overlay
        self._key = key
        self._value = value
        self._log = log
        self._grace = grace_ms
        self._observed = observed
        self._sequence = sequence
        self._from = b""

    def put(self, key: Value, value: Value, context: BufferedContext) -> bool:
        """Buffer a record; return False, and do not buffer it, if it is later than the grace period."""
        time = context[0]
        if self._observed.now - self._grace > time:
            return False
        self._observed.now = max(self._observed.now, time)
        self._sequence.now = (max(self._sequence.now, 0) + 1) & _SEQUENCES
        sequence = self._sequence.now.to_bytes(_SEQUENCE, "big")
        entry_key = _JOIN_ENTRY + time.to_bytes(_TIME, "big") + self._key.serialize(key) + sequence
        stored = Buffered(context, None, None, self._value.serialize(value)).serialize()
        self._overlay.put(entry_key, stored)
        self._log(entry_key, stored + bytes(_TIME), ())
        self._from = min(self._from, entry_key)
        return True

    def pop_until(self, time: int) -> Iterator[tuple[Value, Value, BufferedContext]]:
        """Remove and yield records up to and including `time`, oldest first."""
        end = _JOIN_ENTRY + (time + 1).to_bytes(_TIME, "big") if time >= 0 else _JOIN_ENTRY
        for entry_key, stored in list(self._overlay.range(self._from, end)):
            entry = deserialize_change(stored)
            self._overlay.delete(entry_key)
            self._log(entry_key, None, ())
            self._from = entry_key
            yield (
                self._key.deserialize(entry_key[1 + _TIME : -_SEQUENCE]),
                None if entry.new is None else self._value.deserialize(entry.new),
                entry.context,
            )

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the changelog topic."""
        self._observed.now = max(self._observed.now, _time_of(key))
        if value is None:
            self._overlay.delete(key)
        else:
            self._overlay.put(key, value[:-_TIME])
            self._from = min(self._from, key)


@attrs.frozen
class BufferSize:
    """The number of buffered records and bytes, as clocks of the task."""

    records: Clock
    bytes: Clock


class SuppressBytes:
    """One change per key, in the order of buffer time (`InMemoryTimeOrderedKeyValueChangeBuffer`).

    Entries have the key `e ‖ time(8) ‖ key`; `i ‖ key` has the time of the key's entry. When the batch ends,
    the changelog gets each changed key once: the entry followed by its time, with the header `v` = 3.
    """

    def __init__(self, overlay: Overlay, key: Serde, value: Serde, log: LogEntry, size: BufferSize) -> None:
        self._overlay = overlay
        self._key = key
        self._value = value
        self._log = log
        self._records = size.records
        self._bytes = size.bytes
        self._changed: dict[bytes, None] = {}
        self._entries: dict[bytes, Buffered] = {}  # changed in this batch, serialized when it ends
        self._first: bytes | None = None
        self._order = EntryOrder(overlay, _ENTRY, _AFTER_ENTRIES)

    @property
    def records(self) -> int:
        return max(self._records.now, 0)

    @property
    def size(self) -> int:
        """The size in bytes, as Kafka Streams estimates it."""
        return max(self._bytes.now, 0)

    def is_due(self, time: int) -> bool:
        """Return whether there is an entry of this time, or an earlier one."""
        first = self._oldest_key()
        return first is not None and _time_of(first) <= time

    def put(self, time: int, key: Value, change: tuple[Value, Value], context: BufferedContext) -> None:
        """Buffer a change (new, old). A key that is buffered already keeps its time and its prior value."""
        key_bytes = self._key.serialize(key)
        new, old = change
        if new is not None:
            new = self._value.serialize(new)
        if old is not None:
            old = self._value.serialize(old)
        index = self._overlay.get(_TIME_OF_KEY + key_bytes)
        if index is None:
            entry_key = _ENTRY + time.to_bytes(_TIME, "big") + key_bytes
            entry = Buffered(context, old, old, new)
            self._count(1, _estimate_size(key_bytes, entry))
        else:
            entry_key = _ENTRY + index + key_bytes
            before = self._entry_at(entry_key)
            entry = Buffered(context, before.prior, old, new)
            self._count(0, _estimate_size(key_bytes, entry) - _estimate_size(key_bytes, before))
        self._keep_entry(entry_key, key_bytes, entry)
        self._changed[key_bytes] = None

    def prior(self, key: Value) -> tuple[Value, int] | bool | None:
        """Return the (value, timestamp) last emitted; False = the key is not buffered."""
        key_bytes = self._key.serialize(key)
        index = self._overlay.get(_TIME_OF_KEY + key_bytes)
        if index is None:
            return False
        known = self._entry_at(_ENTRY + index + key_bytes).prior
        return None if known is None else (self._value.deserialize(known), -1)

    def oldest(self) -> tuple[Value, tuple[Value, Value], BufferedContext]:
        """Return (key, (new, old), context) of the oldest entry; raises LookupError if there is none."""
        entry_key = self._oldest_entry_key()
        context, _, old, new = self._entry_at(entry_key)
        if new is not None:
            new = self._value.deserialize(new)
        if old is not None:
            old = self._value.deserialize(old)
        return self._key.deserialize(entry_key[1 + _TIME :]), (new, old), context

    def drop_oldest(self) -> None:
        """Remove the oldest entry; raises LookupError if there is none."""
        entry_key = self._oldest_entry_key()
        key_bytes = entry_key[1 + _TIME :]
        self._remove_entry(entry_key, key_bytes, self._entry_at(entry_key))
        self._changed[key_bytes] = None

    def _oldest_entry_key(self) -> bytes:
        entry_key = self._oldest_key()
        if entry_key is None:
            raise LookupError("the buffer is empty")
        return entry_key

    def flush(self) -> None:
        """Write and log the changes since the last flush."""
        for entry_key, entry in self._entries.items():
            self._overlay.put(entry_key, entry.serialize())
        self._entries.clear()
        for key_bytes in self._changed:
            index = self._overlay.get(_TIME_OF_KEY + key_bytes)
            if index is None:
                self._log(key_bytes, None, ())
            else:
                stored = self._overlay.get(_ENTRY + index + key_bytes) or b""
                self._log(key_bytes, stored + index, _VERSION)
        self._changed.clear()

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Apply a record of the changelog topic."""
        index = self._overlay.get(_TIME_OF_KEY + key)
        if index is not None:
            self._remove_entry(_ENTRY + index + key, key, self._entry_at(_ENTRY + index + key))
        if value is not None:
            entry = deserialize_change(value)
            entry_key = _ENTRY + value[-_TIME:] + key
            self._count(1, _estimate_size(key, entry))
            self._keep_entry(entry_key, key, entry)
            self._overlay.put(entry_key, self._entries.pop(entry_key).serialize())

    def _keep_entry(self, entry_key: bytes, key_bytes: bytes, entry: Buffered) -> None:
        self._order.add(entry_key)
        self._entries[entry_key] = entry
        self._overlay.put(entry_key, _NOT_SERIALIZED)
        self._overlay.put(_TIME_OF_KEY + key_bytes, entry_key[1 : 1 + _TIME])
        if self._first is not None and entry_key < self._first:
            self._first = entry_key

    def _remove_entry(self, entry_key: bytes, key_bytes: bytes, entry: Buffered) -> None:
        self._entries.pop(entry_key, None)
        self._overlay.delete(entry_key)
        self._overlay.delete(_TIME_OF_KEY + key_bytes)
        self._count(-1, -_estimate_size(key_bytes, entry))
        if entry_key == self._first:
            self._first = None

    def _entry_at(self, entry_key: bytes) -> Buffered:
        return self._entries.get(entry_key) or deserialize_change(self._overlay.get(entry_key) or b"")

    def _oldest_key(self) -> bytes | None:
        if self._first is None and self._records.now > 0:
            self._first = self._order.first()
        return self._first

    def _count(self, records: int, size: int) -> None:
        self._records.now = max(self._records.now, 0) + records
        self._bytes.now = max(self._bytes.now, 0) + size


def _estimate_size(key: bytes, entry: Buffered) -> int:
    return _TIME + len(key) + entry.estimated_bytes


def _time_of(entry_key: bytes) -> int:
    return int.from_bytes(entry_key[1 : 1 + _TIME], "big")
