"""Checks of Avro values whose schema does not bound how deeply they are nested, or how many items they have.

fastavro ends the process if a value is nested in thousands of others: it has no limit, and its stack is full.
It also creates each item of an array, although items that take no bytes, such as nulls, can be billions. Both
are checked before it reads a value. Other schemas bound the nesting, and other items take bytes of the value.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import repeat
from typing import Any

import attrs

MOST_LEVELS = 300
"""In how many records, arrays and maps a value may be. Python's own limits, which a worker reaches when it
compares, copies and writes a value, are about 400."""
MOST_EMPTY_ITEMS = 1_000_000
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_LONGEST_NUMBER = 70
_Schema = Any
"""A parsed schema: the JSON of fastavro."""


@attrs.define(eq=False)
class _Type:
    """A type of a schema: how many bytes it has, or what is in it."""

    kind: str
    size: int = 0
    inner: "tuple[_Type, ...]" = ()


@attrs.define(eq=False)
class _Cursor:
    """The bytes of a value, and how many are read."""

    data: bytes
    position: int = 0
    empty_items: int = 0

    def skip(self, size: int) -> None:
        self.position += size
        if size < 0 or self.position > len(self.data):
            raise ValueError(f"{len(self.data)} byte(s) that do not match the schema")

    def read_number(self) -> int:
        number, shift, data, position = 0, 0, self.data, self.position
        while shift < _LONGEST_NUMBER and position < len(data):
            byte = data[position]
            position += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:  # noqa: PLR2004 - the bit that says that another byte follows
                self.position = position
                return (number >> 1) ^ -(number & 1)
            shift += 7
        raise ValueError(f"{len(data)} byte(s) that do not match the schema")

    def items(self, block: _Type) -> Iterator[_Type]:
        """Yield the types of the items of an array or a map."""
        is_empty = _is_empty(block.inner)
        while count := self.read_number():
            if count < 0:
                self.read_number()
            if not is_empty:
                for _ in repeat(None, abs(count)):
                    yield from block.inner
            else:
                self.empty_items += abs(count)
                if self.empty_items > MOST_EMPTY_ITEMS:
                    raise ValueError(f"more than {MOST_EMPTY_ITEMS:,} items that take no bytes")


def limits_of(schema: _Schema, named: Mapping[str, _Schema]) -> Callable[[bytes], None] | None:
    """Return a function that raises ValueError for a value that exceeds a limit; None = no value can.

    Args:
        schema: The schema of the values.
        named: Its records, enums and fixed types by their full names.

    Raises:
        ValueError: A record of the schema is in itself without a union, an array or a map: no value matches.
    """
    types: dict[str, _Type] = {}
    root = _type_of(schema, named, types)
    _refuse_endless_records(types)
    has_empty_items = _has_empty_items(root)
    if not has_empty_items and not any(map(_is_in_itself, types.values())):
        return None
    levels_per_byte = len(types) + 1

    def check(data: bytes) -> None:
        if not has_empty_items and levels_per_byte * (len(data) + 1) <= MOST_LEVELS:
            return
        cursor = _Cursor(data)
        pending: list[Iterator[_Type]] = [iter((root,))]
        while pending:
            found = next(pending[-1], None)
            if found is None:
                pending.pop()
                continue
            while found.kind == "union":
                index = cursor.read_number()
                if not 0 <= index < len(found.inner):
                    raise ValueError(f"{len(data)} byte(s) that do not match the schema")
                found = found.inner[index]
            if found.kind == "number":
                cursor.read_number()
            elif found.kind == "bytes":
                cursor.skip(cursor.read_number())
            elif found.kind == "sized":
                cursor.skip(found.size)
            elif len(pending) > MOST_LEVELS:
                raise ValueError(f"nested in more than {MOST_LEVELS} others")
            else:
                pending.append(iter(found.inner) if found.kind == "record" else cursor.items(found))

    return check


def _type_of(schema: _Schema, named: Mapping[str, _Schema], types: dict[str, _Type]) -> _Type:
    resolved = named.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(resolved, list):
        return _Type("union", inner=tuple(_type_of(each, named, types) for each in resolved))
    kind = resolved["type"] if isinstance(resolved, dict) else resolved
    if kind == "record":
        if resolved["name"] not in types:
            types[resolved["name"]] = record = _Type("record")
            record.inner = tuple(_type_of(field["type"], named, types) for field in resolved["fields"])
        return types[resolved["name"]]
    if kind == "array":
        return _Type("array", inner=(_type_of(resolved["items"], named, types),))
    if kind == "map":
        return _Type("map", inner=(_Type("bytes"), _type_of(resolved["values"], named, types)))
    if kind == "fixed":
        return _Type("sized", resolved["size"])
    if kind in _SIZES:
        return _Type("sized", _SIZES[kind])
    return _Type("bytes" if kind in {"string", "bytes"} else "number")


def _refuse_endless_records(types: Mapping[str, _Type]) -> None:
    for name, record in types.items():
        if record in _reachable_types(record, ("record",)):
            raise ValueError(f"record {name} contains itself, so it has no end")


def _is_in_itself(record: _Type) -> bool:
    return record in _reachable_types(record, ("record", "union", "array", "map"))


def _reachable_types(start: _Type, kinds: tuple[str, ...]) -> "list[_Type]":
    """Return the types in `start`, and in each of these that has one of the kinds."""
    found: list[_Type] = []
    seen: set[int] = set()
    pending = list(start.inner)
    while pending:
        each = pending.pop()
        if id(each) not in seen:
            seen.add(id(each))
            found.append(each)
            pending += each.inner if each.kind in kinds else ()
    return found


def _has_empty_items(root: _Type) -> bool:
    every = [root, *_reachable_types(root, ("record", "union", "array", "map"))]
    return any(each.kind == "array" and _is_empty(each.inner) for each in every)


def _is_empty(types: Iterable[_Type]) -> bool:
    """Return whether values of all types take no bytes."""
    return all(
        (each.kind == "sized" and each.size == 0) or (each.kind == "record" and _is_empty(each.inner))
        for each in types
    )
