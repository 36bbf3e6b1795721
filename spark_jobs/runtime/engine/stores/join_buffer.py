"""Stream records that wait for a versioned table (`RocksDBTimeOrderedKeyValueBuffer`).

A key, in the store as in the changelog, is `0 ‖ time(8) ‖ key ‖ sequence(4)` (`TimeFirstWindowKeySchema`).
"""

from collections.abc import Callable, Iterator

from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Headers, Value
from spark_jobs.runtime.engine.stores.buffered import Buffered, deserialize
from spark_jobs.runtime.engine.stores.interfaces import BufferedContext
from spark_jobs.runtime.engine.stores.overlay import Overlay

_LEAD = b"\0"
_TIME = 8
_SEQUENCE = 4
_SEQUENCES = 0x7FFFFFFF

LogEntry = Callable[[bytes, bytes | None, Headers], None]
"""(key, value, headers) → the changelog."""


class JoinBufferBytes:
    """`JoinBuffer`. `observed` is the largest time ever put, `sequence` counts the records."""

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

    @property
    def min_time(self) -> int | None:
        first = next(self._overlay.range(self._from), None)
        return None if first is None else _time_of(first[0])

    def put(self, key: Value, value: Value, context: BufferedContext) -> bool:
        time = context[0]
        if self._observed.now - self._grace > time:
            return False
        self._observed.now = max(self._observed.now, time)
        self._sequence.now = (max(self._sequence.now, 0) + 1) & _SEQUENCES
        sequence = self._sequence.now.to_bytes(_SEQUENCE, "big")
        place = _LEAD + time.to_bytes(_TIME, "big") + self._key.serialize(key) + sequence
        stored = Buffered(context, None, None, self._value.serialize(value)).serialize()
        self._overlay.put(place, stored)
        self._log(place, stored + bytes(_TIME), ())
        self._from = min(self._from, place)
        return True

    def pop_until(self, time: int) -> Iterator[tuple[Value, Value, BufferedContext]]:
        end = _LEAD + (time + 1).to_bytes(_TIME, "big") if time >= 0 else _LEAD
        for place, stored in list(self._overlay.range(self._from, end)):
            entry = deserialize(stored)
            self._overlay.delete(place)
            self._log(place, None, ())
            self._from = place
            yield (
                self._key.deserialize(place[1 + _TIME : -_SEQUENCE]),
                None if entry.new is None else self._value.deserialize(entry.new),
                entry.context,
            )

    def restore(self, key: bytes, value: bytes | None) -> None:
        """Takes one record of the changelog in."""
        self._observed.now = max(self._observed.now, _time_of(key))
        if value is None:
            self._overlay.delete(key)
        else:
            self._overlay.put(key, value[:-_TIME])
            self._from = min(self._from, key)


def _time_of(place: bytes) -> int:
    return int.from_bytes(place[1 : 1 + _TIME], "big")
