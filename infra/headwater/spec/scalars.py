"""Plain scalars by the core schema of YAML 1.2 (section 10.3.2): `no`, `on`, `1_000` and `12:30` stay text.

A number keeps its text if Python would write it differently: a client must get `0.10` as `0.10`. Topic
configs get the form of the brokers (`topic_configs.broker_text`).
"""

import re
from collections.abc import Callable

from headwater.model.durations import parse_duration
from headwater.spec.schema import document_schema, matches_pattern

Scalar = str | int | float | bool | None


class WrittenInt(int):
    """A whole number that `str` would write differently, such as `007`."""

    written: str


class WrittenFloat(float):
    """A number that `str` would write differently, such as `1.50`."""

    written: str


def _parse_whole(text: str) -> int:
    number = int(text)
    if str(number) == text:
        return number
    written = WrittenInt(number)
    written.written = text
    return written


def _parse_fraction(text: str) -> float | str:
    number = WrittenFloat(text)
    if number in (float("inf"), float("-inf")):
        return text
    number.written = text
    return number


def _parse_based(text: str) -> Scalar:
    """`0o14` or `0xff`."""
    try:
        return int(text, 0)
    except ValueError:  # an octal number with an 8 in it
        return text


_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], Scalar]], ...] = (
    (re.compile(r"[-+]?[0-9]{1,64}"), _parse_whole),
    (
        re.compile(r"[-+]?(?:\.[0-9]{1,64}|[0-9]{1,64}(?:\.[0-9]{0,64})?)(?:[eE][-+]?[0-9]{1,3})?"),
        _parse_fraction,
    ),
    (re.compile(r"0[ox][0-9a-fA-F]{1,64}"), _parse_based),
)
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_STARTS_NUMBER = frozenset("+-.0123456789")


def plain_scalar(text: str) -> Scalar:
    """Return the value of an unquoted scalar. Infinities and `.nan` stay text: JSON does not have them."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] in _STARTS_NUMBER:
        for pattern, number in _NUMBERS:
            if pattern.fullmatch(text):
                return number(text)
    return text


def config_text(value: str | float | bool) -> str:  # noqa: FBT001 - a config value may be a boolean
    """Return a config value as in a properties file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, WrittenInt | WrittenFloat):
        return value.written
    return str(value)


def read_duration(value: object) -> int | None:
    """Return the milliseconds of a duration from a setting or the command line; None if it is invalid."""
    if isinstance(value, str):
        pattern = document_schema()["$defs"]["duration"]["pattern"]
        return parse_duration(value) if matches_pattern(pattern, value) else None
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
