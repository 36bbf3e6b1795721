"""Versioned key-value stores (KIP-889, `RocksDBVersionedStore`).

A key in the store is `length(4) ‖ key ‖ valid from(8)`, its value a byte 1 and the value, or a byte 0 for a
deletion. The changelog gets key, value and as timestamp the time from which it is valid.
"""

from collections.abc import Callable, Iterator

from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.stores.interfaces import NOT_PUT, VersionedRecord
from spark_jobs.runtime.engine.stores.overlay import Overlay

_TIME = 8
_LENGTH = 4
_LAST = b"\xff" * (_TIME + 1)
_DELETED = b"\0"
_VALUE = b"\1"

LogVersion = Callable[[bytes, bytes | None, int], None]
"""(key, value, valid from) → the changelog."""


class VersionedBytes:
    """`VersionedKeyValueStore`; `observed` is the largest time ever put, the history is `retention_ms`."""

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

    def put(self, key: Value, value: Value, timestamp: int) -> int | None:
        stored = None if value is None else self.value_serde.serialize(value)
        return self.put_bytes(self.key_serde.serialize(key), stored, timestamp)

    def put_bytes(self, key: bytes, value: bytes | None, timestamp: int, *, log: bool = True) -> int | None:
        if log:  # also what is too old to be kept, as in Kafka Streams
            self._log(key, value, timestamp)
        if timestamp < self.observed.now - self._retention:
            return NOT_PUT
        self.observed.now = max(self.observed.now, timestamp)
        lead = _lead(key)
        later = next(self.overlay.range(lead + _time(timestamp + 1), lead + _LAST), None)
        place = lead + _time(timestamp)
        if value is not None:
            self.overlay.put(place, _VALUE + value)
        elif later is None and self._leaves_no_trace(lead, place):
            self.overlay.delete(place)
        else:
            self.overlay.put(place, _DELETED)
        self._forget(lead)
        return None if later is None else int.from_bytes(later[0][-_TIME:], "big")

    def delete(self, key: Value, timestamp: int) -> VersionedRecord | None:
        found = self.get(key, timestamp)
        self.put(key, None, timestamp)
        return found

    def get(self, key: Value, as_of: int | None = None) -> VersionedRecord | None:
        lead = _lead(self.key_serde.serialize(key))
        if as_of is not None and as_of < self.observed.now - self._retention:
            latest = self._at(lead, None)
            return latest if latest is not None and latest[1] <= as_of else None
        return self._at(lead, as_of)

    def _at(self, lead: bytes, as_of: int | None) -> VersionedRecord | None:
        end = lead + (_LAST if as_of is None else _time(as_of + 1))
        for place, stored in self.overlay.reverse_range(lead, end):
            if stored == _DELETED:
                return None
            later = next(self.overlay.range(place + b"\0", lead + _LAST), None)
            valid_to = None if later is None else int.from_bytes(later[0][-_TIME:], "big")
            return (
                self.value_serde.deserialize(stored[1:]),
                int.from_bytes(place[-_TIME:], "big"),
                valid_to,
            )
        return None

    def _leaves_no_trace(self, lead: bytes, place: bytes) -> bool:
        """A deletion at the time of the latest version is known only as the end of the one before."""
        replaced = self.overlay.get(place)
        if replaced is None or replaced == _DELETED:
            return False
        before = next(self.overlay.reverse_range(lead, place), None)
        return before is None or before[1] == _DELETED

    def _forget(self, lead: bytes) -> None:
        """Takes out versions that were replaced before the history begins."""
        begin = self.observed.now - self._retention
        if begin <= 0:
            return
        for place in list(self._before(lead, begin)):
            self.overlay.delete(place)

    def _before(self, lead: bytes, begin: int) -> Iterator[bytes]:
        older = self.overlay.reverse_range(lead, lead + _time(begin + 1))
        newest = next(older, None)  # still valid at the beginning of the history
        if newest is None:
            return
        later = next(self.overlay.range(newest[0] + b"\0", lead + _LAST), None)
        if newest[1] == _DELETED and later is None and int.from_bytes(newest[0][-_TIME:], "big") < begin:
            yield newest[0]
        for place, _ in older:
            yield place


def _lead(key: bytes) -> bytes:
    return len(key).to_bytes(_LENGTH, "big") + key


def _time(time: int) -> bytes:
    return max(time, 0).to_bytes(_TIME, "big")
