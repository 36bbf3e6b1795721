"""The values of a window store with duplicates that a batch searches for, by key, in the order of time."""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator

from headwater_spark.engine.stores.interfaces import Pair

_SEQUENCE_BITS = 31
_LAST_SEQUENCE = 2**_SEQUENCE_BITS - 1
_TIME_AND_SEQUENCE = 12
_SEQUENCE = 4

StoredValues = Callable[[bytes], Iterable[Pair]]
"""Key → its entries in the store that may be visible, in order."""
_Values = tuple[list[int], list[bytes]]
"""Times with sequence numbers, and values."""


class BatchValues:
    """Finds the values of a key in a range of time. A key is read from the store once in a batch.

    Entries that expire meanwhile remain here; callers search for visible times only.
    """

    __slots__ = ("_of_keys", "_stored")

    def __init__(self, stored: StoredValues) -> None:
        self._stored = stored
        self._of_keys: dict[bytes, _Values] = {}

    def add(self, key: bytes, time: int, sequence: int, value: bytes) -> None:
        """Register a value that is written."""
        known = self._of_keys.get(key)
        if known is None:
            return
        orders, values = known
        order = time << _SEQUENCE_BITS | sequence
        if not orders or order > orders[-1]:
            orders.append(order)
            values.append(value)
        else:
            at = bisect_left(orders, order)
            orders.insert(at, order)
            values.insert(at, value)

    def find(self, key: bytes, first: int, last: int) -> Iterable[tuple[int, bytes]]:
        """Return (time, value) of the values from time `first` to `last`, as of now."""
        known = self._of_keys.get(key)
        orders, values = known if known is not None else self._read(key)
        begin = bisect_left(orders, first << _SEQUENCE_BITS)
        end = bisect_right(orders, last << _SEQUENCE_BITS | _LAST_SEQUENCE, begin)
        if begin == end:
            return ()
        return _times_and_values(orders[begin:end], values[begin:end])

    def clear(self) -> None:
        self._of_keys.clear()

    def _read(self, key: bytes) -> _Values:
        orders: list[int] = []
        values: list[bytes] = []
        for entry_key, value in self._stored(key):
            time = int.from_bytes(entry_key[-_TIME_AND_SEQUENCE:-_SEQUENCE], "big")
            sequence = int.from_bytes(entry_key[-_SEQUENCE:], "big")
            orders.append(time << _SEQUENCE_BITS | sequence)
            values.append(value)
        self._of_keys[key] = orders, values
        return orders, values


def _times_and_values(orders: list[int], values: list[bytes]) -> Iterator[tuple[int, bytes]]:
    for order, value in zip(orders, values, strict=True):
        yield order >> _SEQUENCE_BITS, value
