"""Hash codes and iteration orders of Java's collections (facts 3.4, 4.2)."""

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TypeVar

from headwater.compiler.java.hash_table import SMALLEST_TABLE, iteration_order, spread

K = TypeVar("K")

_MASK = 0xFFFFFFFF


def signed(value: int) -> int:
    """Return the low 32 bits as a Java `int`."""
    value &= _MASK
    return value - (1 << 32) if value >> 31 else value


@lru_cache(maxsize=1 << 16)
def string_hash(text: str) -> int:
    """Return `String#hashCode`, over UTF-16 code units."""
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
    """Return `Long#hashCode`."""
    value &= 0xFFFFFFFFFFFFFFFF
    return signed(value ^ value >> 32)


def set_hash(items: Iterable[str]) -> int:
    """Return `AbstractSet#hashCode` of strings."""
    return signed(sum(map(string_hash, items)))


def map_hash(entries: Mapping[str, str]) -> int:
    """Return `AbstractMap#hashCode` of strings to strings."""
    return signed(sum(string_hash(key) ^ string_hash(value) for key, value in entries.items()))


def objects_hash(*hashes: int) -> int:
    """Return `Objects.hash` of values with these hash codes."""
    value = 1
    for each in hashes:
        value = (value * 31 + each) & _MASK
    return signed(value)


def hash_order(keys: Iterable[K], hash_of: Callable[[K], int]) -> tuple[K, ...]:
    """Return the iteration order of a `HashSet` or `HashMap` to which `keys` were added one by one."""
    return tuple(iteration_order([(spread(hash_of(key)), key) for key in dict.fromkeys(keys)]))


def copy_order(keys: Iterable[K], hash_of: Callable[[K], int], size: int | None = None) -> tuple[K, ...]:
    """Return the order of `new HashSet<>(collection)`; `size` is the collection's with duplicates."""
    hashed = [(spread(hash_of(key)), key) for key in dict.fromkeys(keys)]
    wanted = int((len(hashed) if size is None else size) / 0.75) + 1
    return tuple(iteration_order(hashed, max(SMALLEST_TABLE, 1 << (wanted - 1).bit_length())))


def string_order_from(capacity: int, keys: Iterable[str]) -> tuple[str, ...]:
    """Return the iteration order of `new HashSet<>(capacity)` to which `keys` were added one by one."""
    hashed = [(spread(string_hash(key)), key) for key in dict.fromkeys(keys)]
    return tuple(iteration_order(hashed, 1 << max(capacity - 1, 0).bit_length()))


def string_set_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return `hash_order` of strings."""
    return hash_order(keys, string_hash)


def string_copy_order(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the iteration order of a copy of a `HashSet` of strings to which `keys` were added."""
    return copy_order(string_set_order(keys), string_hash)
