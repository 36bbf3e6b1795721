"""PURE. Hash codes and iteration orders of Java's collections: Kafka Streams' results depend on them (facts 3.4, 4.2).

A `HashMap` is a table of buckets; iterating it goes through the buckets in order and through each bucket in insertion
order. The table doubles when more than three quarters of it are used, and once more when nine keys meet in one bucket of a
table that is still small. Buckets of larger tables that become trees (nine colliding keys) are not modelled.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

K = TypeVar("K")

_MASK = 0xFFFFFFFF
_SMALLEST_TABLE = 16
_SMALLEST_TREE_TABLE = 64
_LONGEST_BUCKET = 8


def signed(value: int) -> int:
    """The low 32 bits as a Java `int`."""
    value &= _MASK
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=1 << 16)
def string_hash(text: str) -> int:
    """`String#hashCode`, over UTF-16 code units."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (value * 31 + unit) & _MASK
    else:
        units = text.encode("utf-16-le", "surrogatepass")
        for low, high in zip(units[::2], units[1::2], strict=True):
            value = (value * 31 + (high << 8 | low)) & _MASK
    return signed(value)


def long_hash(value: int) -> int:
    """`Long#hashCode`."""
    value &= 0xFFFFFFFFFFFFFFFF
    return signed(value ^ value >> 32)


def set_hash(items: Iterable[str]) -> int:
    """`AbstractSet#hashCode` of strings."""
    return signed(sum(map(string_hash, items)))


def map_hash(entries: Mapping[str, str]) -> int:
    """`AbstractMap#hashCode` of strings to strings."""
    return signed(sum(string_hash(key) ^ string_hash(value) for key, value in entries.items()))


def objects_hash(*hashes: int) -> int:
    """`Objects.hash` of values with these hash codes."""
    value = 1
    for each in hashes:
        value = (value * 31 + each) & _MASK
    return signed(value)


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> tuple[K, ...]:
    """The iteration order of a `HashSet` (or `HashMap`) to which `keys` were added one by one."""
    return _iterate({key: _spread(hash_of(key)) for key in keys}, _SMALLEST_TABLE)


def copy_order(keys: Iterable[K], hash_of: Callable[[K], int], size: int | None = None) -> tuple[K, ...]:
    """The iteration order of `new HashSet<>(collection)`; `size` is the collection's, with what occurs twice counted twice."""
    spread = {key: _spread(hash_of(key)) for key in keys}
    wanted = int((len(spread) if size is None else size) / 0.75) + 1
    return _iterate(spread, max(_SMALLEST_TABLE, 1 << (wanted - 1).bit_length()))


def string_set_order(keys: Iterable[str]) -> tuple[str, ...]:
    """`hash_order` of strings."""
    return hash_order(keys, string_hash)


def string_copy_order(keys: Iterable[str]) -> tuple[str, ...]:
    """`copy_order` of strings: how the set that a `HashSet` of these was copied to is printed."""
    return copy_order(string_set_order(keys), string_hash)


def _spread(value: int) -> int:
    value &= _MASK
    return value ^ value >> 16


def _iterate(spread: Mapping[K, int], table: int) -> tuple[K, ...]:
    table = _grown(list(spread.values()), table)
    return tuple(sorted(spread, key=lambda key: spread[key] & table - 1))


def _grown(hashes: list[int], table: int) -> int:
    """The table's size after adding keys with these (spread) hashes in order."""
    count = 0
    filled: Counter[int] = Counter()
    while table < _SMALLEST_TREE_TABLE and count < len(hashes):
        bucket = hashes[count] & table - 1
        count += 1
        filled[bucket] += 1
        doubled = table << (filled[bucket] > _LONGEST_BUCKET)
        doubled <<= count > doubled * 3 // 4
        if doubled != table:
            table = doubled
            filled = Counter(value & table - 1 for value in hashes[:count])
    while len(hashes) > table * 3 // 4:
        table *= 2
    return table
