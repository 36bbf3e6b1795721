"""The store of a stream-stream join's unmatched records (`ListValueStore` of `TimestampedKeyAndJoinSide`).

Key: `timestamp(8) ‖ side(1: 1 = left) ‖ key`. One value of the list: `side(1) ‖ value` (`LeftOrRightValue`).
The list as `ListSerializer` writes it: `1 ‖ count(4) ‖ (length(4) ‖ value)...`.
"""

from collections.abc import Callable, Iterator

from spark_jobs.runtime.engine.program_interface import Serde
from spark_jobs.runtime.engine.records import Context, Value
from spark_jobs.runtime.engine.stores.layers import Logged

_TIME = 8
_SIDE = 1
_INT = 4
_LEFT = b"\1"
_RIGHT = b"\0"
_VARIABLE_SIZE = b"\1"


class ListBytes:
    """`ListStore`; left and right values have serdes of their own."""

    def __init__(
        self,
        below: Logged,
        key: Serde,
        left: Serde,
        right: Serde,
        context: Callable[[], Context],
    ) -> None:
        self.below = below
        self._key = key
        self._serdes = {True: left, False: right}
        self._context = context
        self._from = b""

    def add(self, timestamp: int, is_left: bool, key: Value, value: Value) -> None:  # noqa: FBT001
        side = _LEFT if is_left else _RIGHT
        entry = side + self._serdes[is_left].serialize(value)
        place = self._place(timestamp, is_left, key)
        stored = self.below.overlay.get(place)
        entries = [*_entries(stored), entry] if stored is not None else [entry]
        self.below.put(place, _joined(entries), self._context())
        self._from = min(self._from, place)

    def clear(self, timestamp: int, is_left: bool, key: Value) -> None:  # noqa: FBT001
        self.below.put(self._place(timestamp, is_left, key), None, self._context())

    def all(self) -> Iterator[tuple[int, bool, Value, Value]]:
        for place, stored in self._places():
            timestamp = int.from_bytes(place[:_TIME], "big")
            is_left = place[_TIME : _TIME + _SIDE] == _LEFT
            key = self._key.deserialize(place[_TIME + _SIDE :])
            for entry in _entries(stored):
                yield timestamp, is_left, key, self._serdes[is_left].deserialize(entry[_SIDE:])

    def first_time(self) -> int | None:
        """The smallest timestamp there is."""
        first = next(self._places(), None)
        return None if first is None else int.from_bytes(first[0][:_TIME], "big")

    def holds(self, timestamp: int, is_left: bool, key: Value) -> bool:  # noqa: FBT001
        return self.below.overlay.get(self._place(timestamp, is_left, key)) is not None

    def _places(self) -> Iterator[tuple[bytes, bytes]]:
        """Begins where the last look found the first entry: what was cleared is not passed again."""
        places = self.below.overlay.range(self._from)
        first = next(places, None)
        if first is not None:
            self._from = first[0]
            yield first
            yield from places

    def _place(self, timestamp: int, is_left: bool, key: Value) -> bytes:  # noqa: FBT001
        side = _LEFT if is_left else _RIGHT
        return timestamp.to_bytes(_TIME, "big") + side + self._key.serialize(key)


def _joined(entries: list[bytes]) -> bytes:
    head = _VARIABLE_SIZE + len(entries).to_bytes(_INT, "big")
    return head + b"".join(len(entry).to_bytes(_INT, "big") + entry for entry in entries)


def _entries(stored: bytes) -> Iterator[bytes]:
    at = 1 + _INT
    while at < len(stored):
        end = at + _INT + int.from_bytes(stored[at : at + _INT], "big")
        yield stored[at + _INT : end]
        at = end
