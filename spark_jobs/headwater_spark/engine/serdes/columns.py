"""Reads and writes whole columns: for strings without a call per value."""

from collections.abc import Sequence

from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.plain import PLAIN


def read_column(serde: Serde, column: Sequence[bytes | None]) -> Sequence[Value]:
    """Return the values; raises ValueError if one is not valid in the format."""
    if serde is PLAIN["bytes"]:
        return column
    has_nulls = None in column
    if serde is PLAIN["string"] and not has_nulls:
        try:
            return list(map(bytes.decode, column))  # type: ignore[arg-type]  # none is null
        except UnicodeDecodeError:
            pass
    read = serde.deserialize
    return [None if data is None else read(data) for data in column]


def write_column(serde: Serde, column: Sequence[Value]) -> Sequence[bytes | None]:
    """Return the bytes of the values; raises what the serde raises for one that does not fit the format."""
    if serde is PLAIN["string"] and set(map(type, column)) == {str}:
        try:
            return list(map(str.encode, column))
        except UnicodeEncodeError:
            pass
    write = serde.serialize
    return [None if value is None else write(value) for value in column]
