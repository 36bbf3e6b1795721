"""Short phrases for what was found and what is allowed, as they stand in problems."""

from collections.abc import Iterable, Sequence
from typing import Any

from infra.spec.places import PathPart

_TYPES = {
    "object": "a mapping",
    "array": "a list",
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "null": "nothing",
}
_LONGEST = 60


def code(words: Iterable[str]) -> str:
    """`a`, `b`, `c`."""
    return ", ".join(f"`{word}`" for word in words)


def either(phrases: Sequence[str]) -> str:
    """a, b or c."""
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]


def types(names: str | Sequence[str]) -> str:
    """The JSON Schema types as people call them."""
    return either([_TYPES[name] for name in ([names] if isinstance(names, str) else names)])


def found(value: Any) -> str:
    """A value in few words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true" if value else "false"
        case str():
            return f"text `{shorten(value)}`"
        case int() | float():
            return f"number {shorten(str(value))}"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case _:
            return f"a mapping with {code(shorten(key) for key in list(value)[:6])}" if value else "an empty mapping"


def shorten(text: str) -> str:
    """At most 60 characters on one line."""
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def subject(path: Sequence[PathPart]) -> str:
    """What the value at `path` is, seen by a reader of the document."""
    if not path:
        return "the document"
    last = path[-1]
    if isinstance(last, str):
        return f"`{shorten(last)}`"
    if len(path) > 1 and path[-2] in ("topology", "then"):
        return f"step {last + 1}"
    return f"item {last + 1} of {subject(path[:-1])}"
