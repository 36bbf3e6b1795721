"""Expressions that YAML splits: `{where: if(a, b, c)}` is a mapping with the keys `where`, `b` and `c)`."""

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from headwater.spec.phrases import nearest


@attrs.frozen
class SplitExpression:
    """The value `start` of `key`, and the keys without a value that continue it."""

    key: str
    start: str
    pieces: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the expression that was probably meant."""
        return ", ".join((self.start, *self.pieces))


def split_expressions(mapping: Mapping[str, Any], allowed: Collection[str]) -> tuple[SplitExpression, ...]:
    """Return the expressions that commas split within `mapping`, whose known keys are `allowed`.

    Such an expression is text with an open bracket, before unknown keys that have no value.
    """
    pieces: dict[str, list[str]] = {}
    key: str | None = None
    for name, value in mapping.items():
        if name in allowed:
            key = name if isinstance(value, str) and _open_brackets(value) > 0 else None
        elif value is not None or nearest(name, allowed):
            key = None
        elif key is not None:
            pieces.setdefault(key, []).append(name)
    return tuple(SplitExpression(key, mapping[key], tuple(names)) for key, names in pieces.items())


def _open_brackets(text: str) -> int:
    return sum(text.count(bracket) for bracket in "([") - sum(text.count(bracket) for bracket in ")]")
