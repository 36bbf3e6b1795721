"""Totals of aggregations as their store returns them, and how many bytes they need there.

In Kafka Streams a cache has bytes: each record reads the total that the record before it has written. A total
that is known to be read as it was written is not written before the batch ends.
"""

from collections.abc import Callable
from math import isfinite
from typing import Final

import attrs

from headwater_spark.engine.operators.aggregation import Functions
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.formats import JSON
from headwater_spark.engine.serdes.plain import PLAIN, reads_as_written

INT_64: Final = 2**63
_SCALARS: Final = frozenset((type(None), int, float, bool))
CONTAINERS: Final = frozenset((dict, list))
"""The types of the values of JSON that contain others."""
_WIDEST: Final = "\U0001f600"
_ESCAPE: Final = 2
_LONG_ESCAPE: Final = 6
"""The most bytes of an ASCII character in JSON: of a printable one, and of any."""
_PAIR_ESCAPES: Final = 3
"""The most bytes in JSON for a byte of UTF-8 of other characters: beyond 16 bits, 12 bytes instead of 4."""
_LONGEST_FLOAT: Final = 32
_DEEPEST: Final = 32


class StoredTotals:
    """What a store with a value serde makes of totals.

    Attributes:
        per_character: The most bytes of a character of a total; 0 = totals are not texts.
        are_whole_numbers: Whether whole numbers are read as such; a `double` is read with a fraction.
    """

    def __init__(self, serde: Serde) -> None:
        self._serde = serde
        self._last: tuple[Value, int] = (None, 0)
        """The last total whose size was found, and at least its bytes."""
        self.per_character = _bytes_per_character(serde.serialize)
        self.are_whole_numbers = _reads_whole_numbers(serde)

    def size_of(self, total: Value) -> int:
        """Return at least the bytes of a total. Raises the error of the serde if it cannot be written."""
        if type(total) is str and self.per_character:
            return len(total) * self.per_character + 2
        last, size = self._last
        return size if last is total else len(self._serde.serialize(total))

    def reading_functions(self, functions: Functions) -> Functions:
        """Return functions whose results are totals as the store returns them."""
        if reads_as_written(self._serde):
            return functions
        as_stored = self._json_as_stored if self._serde is JSON else self._others_as_stored
        return attrs.evolve(functions, add=as_stored(functions.add), add_again=as_stored(functions.add_again))

    def _json_as_stored(self, function: Callable[[Value, Value, Value], Value]) -> Callable[..., Value]:
        read_again = self._read_again

        def compute(key: Value, value: Value, total: Value) -> Value:
            new = function(key, value, total)
            kind = type(new)
            if kind in CONTAINERS:
                size = plain_json_size(new)
                if size is None:
                    return read_again(new)
                self._last = new, size
                return new
            if kind is str:
                return new if _has_only_characters(new) else read_again(new)
            return new if kind in _SCALARS and (kind is not float or isfinite(new)) else read_again(new)

        return compute

    def _others_as_stored(self, function: Callable[[Value, Value, Value], Value]) -> Callable[..., Value]:
        read_again, has_texts = self._read_again, self._serde is PLAIN["string"]

        def compute(key: Value, value: Value, total: Value) -> Value:
            new = function(key, value, total)
            if type(new) is str:
                return new if has_texts and _has_only_characters(new) else read_again(new)
            return new if new is None else read_again(new)

        return compute

    def _read_again(self, total: Value) -> Value:
        written = self._serde.serialize(total)
        again = self._serde.deserialize(written)
        self._last = again, len(written)
        return again


def plain_json_size(value: Value, depth: int = 0) -> int | None:
    """Return at least the bytes of the JSON of an object, an array or a part of one.

    None = it may not be read as it was written, or is nested deeply: halves of surrogate pairs are read as
    other characters, and values of types that JSON does not have are read as texts.
    """
    kind = type(value)
    if kind is str:
        return _text_size(value)
    if kind not in CONTAINERS:
        return _scalar_size(value)
    if depth > _DEEPEST:
        return None
    size = 2
    if kind is dict:
        for name in value:
            part = _text_size(name) if type(name) is str else None
            if part is None:
                return None
            size += part + 1
        value = value.values()
    for each in value:
        part = plain_json_size(each, depth + 1)
        if part is None:
            return None
        size += part + 1
    return size


def _text_size(text: str) -> int | None:
    most = _ESCAPE if text.isprintable() else _LONG_ESCAPE
    if text.isascii():
        return most * len(text) + 2
    if not _has_only_characters(text):
        return None
    return max(most, _PAIR_ESCAPES) * len(text.encode()) + 2


def _has_only_characters(text: str) -> bool:
    """Return whether a text has no half of a surrogate pair: UTF-8 has no bytes for these."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _scalar_size(value: Value) -> int | None:
    kind = type(value)
    if kind is int:
        # Three bits for each digit, the last digit, and a sign.
        return value.bit_length() // 3 + 2 if -INT_64 <= value < INT_64 else None
    if kind is float:
        return _LONGEST_FLOAT if isfinite(value) else None
    return len("false") if value is None or kind is bool else None


def _bytes_per_character(serialize: Callable[[Value], bytes]) -> int:
    """Return the most bytes of a character in UTF-8 or JSON; 0 for other formats."""
    try:
        widest = serialize(_WIDEST)
    except Exception:  # noqa: BLE001 - formats of numbers raise anything
        return 0
    return {_WIDEST.encode(): 4, b'"\\uD83D\\uDE00"': 12}.get(widest, 0)


def _reads_whole_numbers(serde: Serde) -> bool:
    try:
        return type(serde.deserialize(serde.serialize(1))) is int
    except Exception:  # noqa: BLE001 - other formats raise anything
        return False
