"""Plain scalars by the core schema of YAML 1.2 (section 10.3.2): `no`, `on`, `1_000` and `12:30` stay text.

A number remembers how it was written where that differs from Python's way: `0.10` in a config must reach Kafka as `0.10`.
"""

import re

_INTEGER = re.compile(r"[-+]?[0-9]{1,64}\Z")
_OCTAL = re.compile(r"0o[0-7]{1,64}\Z")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,64}\Z")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]{1,64}|[0-9]{1,64}(?:\.[0-9]{0,64})?)(?:[eE][-+]?[0-9]{1,3})?\Z")
_WORDS: dict[str, bool | None] = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True,
    "false": False, "False": False, "FALSE": False,
}  # fmt: skip
_STARTS_NUMBER = frozenset("+-.0123456789")

Scalar = str | int | float | bool | None


class WrittenInt(int):
    """An integer that was written otherwise than `str` would, as `007`."""

    written: str


class WrittenFloat(float):
    """A number that was written otherwise than `str` would, as `1.50`."""

    written: str


def plain_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar. Infinities and `.nan` stay text: JSON has none."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _STARTS_NUMBER:
        return text
    if _INTEGER.match(text):
        return _as_written(WrittenInt(text), text)
    if _OCTAL.match(text):
        return int(text[2:], 8)
    if _HEXADECIMAL.match(text):
        return int(text[2:], 16)
    if _FLOAT.match(text):
        number = WrittenFloat(text)
        return text if number in (float("inf"), float("-inf")) else _as_written(number, text)
    return text


def config_text(value: str | float | bool) -> str:  # noqa: FBT001 - a config value may be a truth value
    """A config value as it would stand in a properties file."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, WrittenInt | WrittenFloat):
        return value.written
    return str(value)


def _as_written(number: WrittenInt | WrittenFloat, text: str) -> int | float:
    if number.__str__() == text:
        return int(number) if isinstance(number, int) else float(number)
    number.written = text
    return number
