"""Versioned key-value stores (KIP-889, `RocksDBVersionedStore`).

An entry key is `length(4) ‖ key ‖ valid from(8)`; the entry is a byte 1 and the value, or a byte 0 for a
deletion. In the changelog, the timestamp of a record is the time from which it is valid.
"""

from collections.abc import Callable, Iterator

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Clock, Value
from headwater_spark.engine.stores.interfaces import NOT_PUT, VersionedRecord
from headwater_spark.engine.stores.overlay import Overlay

_TIME = 8
_LENGTH = 4
_LAST = b"\xff" * (_TIME + 1)
_DELETED = b"\0"
_VALUE = b"\1"

LogVersion = Callable[[bytes, bytes | None, int], None]
"""Appends (key, value, valid from) to the changelog topic."""


class VersionedBytes:
    """`VersionedKeyValueStore`; `observed` is the largest time ever put, `retention_ms` is the history."""

    def __init__(
        self,
        overlay: Overlay,
        key: Serde,
        value: Serde,
        log: LogVersion,
        *,
        retention_ms: int,
        observed: Clock,
    ) -> None:
        self.key_serde = key
        self.value_serde = value
        self.overlay = overlay
        self.observed = observed
        self._log = log
        self._retention = retention_ms
        self._oldest: dict[bytes, bytes] = {}
        """Prefix → entry key before which the batch has deleted all versions: no search reads them again."""

    def put(self, key: Value, value: Value, timestamp: int) -> int | None:
        stored = None if value is None else self.value_serde.serialize(value)
        return self.put_bytes(self.key_serde.serialize(key), stored, timestamp)

    def put_bytes(self, key: bytes, value: bytes | None, timestamp: int, *, log: bool = True) -> int | None:
        if log:  # also versions too old to be stored, as in Kafka Streams
            self._log(key, value, timestamp)
        if timestamp < self.observed.now - self._retention:
            return NOT_PUT
        self.observed.now = max(self.observed.now, timestamp)
        prefix = _prefix_of(key)
        later = next(self.overlay.range(prefix + _time_bytes(timestamp + 1), prefix + _LAST), None)
        entry_key = prefix + _time_bytes(timestamp)
        if value is not None:
            self.overlay.put(entry_key, _VALUE + value)
        elif later is None and self._needs_no_entry(prefix, entry_key):
            self.overlay.delete(entry_key)
        else:
            self.overlay.put(entry_key, _DELETED)
        self._expire(prefix)
        return None if later is None else int.from_bytes(later[0][-_TIME:], "big")

    def delete(self, key: Value, timestamp: int) -> VersionedRecord | None:
        is_too_old = timestamp < self.observed.now - self._retention  # then the latest version stays
        found = None if is_too_old else self.get(key, timestamp)
        self.put(key, None, timestamp)
        return found

    def get(self, key: Value, as_of: int | None = None) -> VersionedRecord | None:
        prefix = _prefix_of(self.key_serde.serialize(key))
        if as_of is not None and as_of < self.observed.now - self._retention:
            latest = self._at(prefix, None)
            return latest if latest is not None and latest[1] <= as_of else None
        return self._at(prefix, as_of)

    def _at(self, prefix: bytes, as_of: int | None) -> VersionedRecord | None:
        end = prefix + (_LAST if as_of is None else _time_bytes(as_of + 1))
        for entry_key, stored in self.overlay.reverse_range(self._first_kept(prefix), end):
            if stored == _DELETED:
                return None
            later = next(self.overlay.range(entry_key + b"\0", prefix + _LAST), None)
            valid_to = None if later is None else int.from_bytes(later[0][-_TIME:], "big")
            return (
                self.value_serde.deserialize(stored[1:]),
                int.from_bytes(entry_key[-_TIME:], "big"),
                valid_to,
            )
        return None

    def end_batch(self) -> None:
        """Forget what the batch has deleted."""
        self._oldest.clear()

    def _first_kept(self, prefix: bytes) -> bytes:
        return self._oldest.get(prefix, prefix)

    def _needs_no_entry(self, prefix: bytes, entry_key: bytes) -> bool:
        """Return whether a deletion at the time of the latest version needs no entry of its own.

        Such a deletion is only the end of the version before.
        """
        replaced = self.overlay.get(entry_key)
        if replaced is None or replaced == _DELETED:
            return False
        before = next(self.overlay.reverse_range(self._first_kept(prefix), entry_key), None)
        return before is None or before[1] == _DELETED

    def _expire(self, prefix: bytes) -> None:
        """Delete versions that were replaced before the history begins."""
        begin = self.observed.now - self._retention
        if begin <= 0:
            return
        for entry_key in list(self._before(prefix, begin)):
            self.overlay.delete(entry_key)

    def _before(self, prefix: bytes, begin: int) -> Iterator[bytes]:
        older = self.overlay.reverse_range(self._first_kept(prefix), prefix + _time_bytes(begin + 1))
        newest = next(older, None)  # still valid at the beginning of the history
        if newest is None:
            return
        self._oldest[prefix] = newest[0]
        later = next(self.overlay.range(newest[0] + b"\0", prefix + _LAST), None)
        if newest[1] == _DELETED and later is None and int.from_bytes(newest[0][-_TIME:], "big") < begin:
            yield newest[0]
        for entry_key, _ in older:
            yield entry_key


def _prefix_of(key: bytes) -> bytes:
    return len(key).to_bytes(_LENGTH, "big") + key


def _time_bytes(time: int) -> bytes:
    return max(time, 0).to_bytes(_TIME, "big")
