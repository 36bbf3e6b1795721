"""Casts with Spark's formats (ANSI mode: an invalid cast is an error)."""

import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta

from headwater.compiler.java.config_values import double_text
from headwater_spark.engine.expressions.faults import EvaluationError, type_name
from headwater_spark.engine.expressions.operations import (
    in_range,
    text_to_boolean,
    text_to_double,
    text_to_whole,
)
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.java_texts import read_utf8, write_utf8

_DATE = re.compile(r"([+-]?\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T].*)?)?)?", re.ASCII)
_TIMESTAMP = re.compile(
    r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2})(?:[ T](\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d{1,9}))?)?"
    r"\s*(Z|UTC|[+-]\d{1,2}(?::?\d{2})?)?)?)?)?",
    re.ASCII,
)


def to_text(value: Value) -> Value:
    if value is None or type(value) is str:
        return value
    return _TEXTS.get(type(value), _no_text)(value)


def _no_text(value: Value) -> str:
    raise EvaluationError(f"{type_name(value)} cannot be cast to STRING")


def _timestamp_text(value: datetime) -> str:
    text = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0")
    return f"{text}.{value.microsecond:06d}".rstrip("0") if value.microsecond else text


def _member_text(value: Value) -> str:
    return "null" if value is None else str(to_text(value))


_TEXTS: Mapping[type, Callable[[Value], str]] = {
    int: str,
    bool: lambda value: "true" if value else "false",
    float: double_text,
    bytes: read_utf8,
    list: lambda value: f"[{', '.join(map(_member_text, value))}]",
    dict: lambda value: "{" + ", ".join(map(_member_text, value.values())) + "}",
    date: date.isoformat,
    datetime: _timestamp_text,
}


def to_whole(value: Value) -> Value:
    """Cast to BIGINT."""
    if value is None or type(value) is int:
        return value
    if type(value) is str:
        return text_to_whole(value)
    if type(value) is bool:
        return int(value)
    if type(value) is float:
        if not math.isfinite(value):
            raise EvaluationError("NaN or an infinity cannot be cast to a whole number")
        return in_range(int(value))
    if isinstance(value, datetime):
        return (value - _EPOCH) // timedelta(seconds=1)
    return _no_cast(value, "BIGINT")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def narrower_cast(name: str, bits: int) -> Callable[[Value], Value]:
    """Return the cast to INT, SMALLINT or TINYINT."""
    limit = 1 << (bits - 1)

    def cast(value: Value) -> Value:
        number = to_whole(value)
        if number is None or -limit <= number < limit:
            return number
        raise EvaluationError(f"a whole number exceeds {bits} bits ({name} overflow)")

    return cast


def to_double(value: Value) -> Value:
    if value is None or type(value) is float:
        return value
    if type(value) is str:
        return text_to_double(value)
    if type(value) in {int, bool}:
        return float(value)
    if isinstance(value, datetime):
        return (value - _EPOCH) / timedelta(seconds=1)
    return _no_cast(value, "DOUBLE")


def to_boolean(value: Value) -> Value:
    if value is None or type(value) is bool:
        return value
    if type(value) is str:
        return text_to_boolean(value)
    if type(value) in {int, float}:
        return value != 0
    return _no_cast(value, "BOOLEAN")


def to_binary(value: Value) -> Value:
    if value is None or type(value) is bytes:
        return value
    return write_utf8(value) if type(value) is str else _no_cast(value, "BINARY")


def to_date(value: Value) -> Value:
    if value is None:
        return None
    if isinstance(value, datetime):
        return value.astimezone(UTC).date()
    if isinstance(value, date):
        return value
    if type(value) is not str:
        return _no_cast(value, "DATE")
    found = _DATE.fullmatch(value.strip())
    try:
        if found is not None:
            return date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError:
        pass
    raise EvaluationError("a STRING is not a valid DATE")


def to_timestamp(value: Value) -> Value:
    if value is None or isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    if type(value) in {int, float}:
        return _EPOCH + timedelta(seconds=value)
    if type(value) is not str:
        return _no_cast(value, "TIMESTAMP")
    found = _TIMESTAMP.fullmatch(value.strip())
    try:
        if found is not None:
            return _moment(found)
    except ValueError:
        pass
    raise EvaluationError("a STRING is not a valid TIMESTAMP")


def _moment(found: re.Match[str]) -> datetime:
    given = zip(found.groups()[:6], _LOWEST, strict=True)
    year, month, day, hour, minute, second = [int(each) if each is not None else low for each, low in given]
    micros = int((found[7] or "0")[:6].ljust(6, "0"))
    return datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC) - _offset(found[8])


_LOWEST = (1, 1, 1, 0, 0, 0)


def _offset(zone: str | None) -> timedelta:
    if zone is None or zone in {"Z", "UTC"}:
        return timedelta()
    hours, minutes = zone[1:].partition(":")[::2] if ":" in zone else (zone[1:3], zone[3:])
    offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
    return -offset if zone[0] == "-" else offset


def _no_cast(value: Value, to: str) -> Value:
    raise EvaluationError(f"{type_name(value)} cannot be cast to {to}")


CASTS: Mapping[str, Callable[[Value], Value]] = {
    "TEXT": to_text,
    "BIGINT": to_whole,
    "INT": narrower_cast("INT", 32),
    "SMALLINT": narrower_cast("SMALLINT", 16),
    "TINYINT": narrower_cast("TINYINT", 8),
    "DOUBLE": to_double,
    "FLOAT": to_double,
    "BOOLEAN": to_boolean,
    "BINARY": to_binary,
    "DATE": to_date,
    "TIMESTAMP": to_timestamp,
    "TIMESTAMPTZ": to_timestamp,
}
"""sqlglot's name of the type → cast. FLOAT has the precision of DOUBLE."""

CAST_FUNCTIONS: Mapping[str, str] = {
    "string": "TEXT",
    "bigint": "BIGINT",
    "int": "INT",
    "smallint": "SMALLINT",
    "tinyint": "TINYINT",
    "double": "DOUBLE",
    "float": "FLOAT",
    "boolean": "BOOLEAN",
    "binary": "BINARY",
    "date": "DATE",
    "timestamp": "TIMESTAMP",
}
"""Cast functions such as `int(x)` → type"""
