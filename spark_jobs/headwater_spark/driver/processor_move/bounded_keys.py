"""Keep something of each key of a changelog partition in bounded memory.

Whether an entry counts is only known at the end of the partition: a later record may delete it. If there are
too many keys, only those whose hash is in a smaller range are kept, and the partition is read again for the
others.
"""

from collections.abc import Iterator
from typing import Any, Generic, TypeVar
from zlib import crc32

_Value = TypeVar("_Value")
_HASHES = 2**32


class BoundedKeys(Generic[_Value]):
    """The values of keys whose hash is from `begin` on, and below `end`, which is reduced if necessary."""

    def __init__(self, most: int, begin: int) -> None:
        self._most = most
        self._begin = begin
        self.end = _HASHES
        self.found: dict[bytes, _Value] = {}

    def put(self, key: bytes, value: _Value) -> None:
        if not self._begin <= crc32(key) < self.end:
            return
        self.found[key] = value
        while len(self.found) > self._most and self.end - self._begin > 1:
            self.end = self._begin + (self.end - self._begin) // 2
            self.found = {each: kept for each, kept in self.found.items() if crc32(each) < self.end}

    def remove(self, key: bytes) -> None:
        self.found.pop(key, None)


def bounded_keys(most: int) -> Iterator[BoundedKeys[Any]]:
    """Yield what the next pass over a partition is to fill; the passes have different keys.

    Normally there is one pass. Each has at most `most` keys, unless their hashes are equal.
    """
    begin = 0
    while begin < _HASHES:
        keys = BoundedKeys[Any](most, begin)
        yield keys
        begin = keys.end
