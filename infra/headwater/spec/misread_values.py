"""Fixes for values that YAML reads as another type than their author meant.

YAML accepts many typing mistakes: without a space, `id:shop` is text, and `-stream: orders` is a key.
The type is then wrong, and an example of the required type would not say what to type.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from headwater.model.problems import shorten_text
from headwater.spec.schema import operator_names

_PAIR = re.compile(r"(?P<key>[A-Za-z$][\w.$-]*)(?P<sign>:|\s*=\s*)(?P<value>(?!//)\S.*)")
_QUOTES = re.compile("[\N{LEFT DOUBLE QUOTATION MARK}\N{LEFT SINGLE QUOTATION MARK}]")
_NUMBER = re.compile("-?[0-9]+")
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


def misread_type_fix(value: object, required: str | Sequence[str], name: str, *, is_step: bool) -> str:
    """Return what to type instead of `value`; empty if it is not known.

    Args:
        value: The value as it was read.
        required: The types of JSON Schema, one of which is required.
        name: What the value is called in the document.
        is_step: Whether it is a step of a topology.
    """
    types = {required} if isinstance(required, str) else set(required)
    if fix := unquoted_fix(value, required):
        return fix
    match value:
        case str() if "object" in types:
            return _fix_of_text(value, is_step=is_step)
        case list() if "object" in types:
            return _fix_of_list(value)
        case dict() if types == {"array"}:
            return _fix_of_steps(value)
        case None if types == {"object"} and not is_step:
            return f"Indent the lines that belong to {name} deeper than {name} itself."
        case _:
            return ""


def unquoted_fix(value: object, required: str | Collection[str]) -> str:
    """Return the fix for a number or a boolean in quotes; empty for another value.

    `required` are the types of JSON Schema, one of which is required.
    """
    types = {required} if isinstance(required, str) else set(required)
    is_number = isinstance(value, str) and bool(_NUMBER.fullmatch(value)) and "integer" in types
    is_boolean = value in ("true", "false") and "boolean" in types
    return "Remove the quotes." if is_number or is_boolean else ""


def _fix_of_text(text: str, *, is_step: bool) -> str:
    if is_step and text in operator_names():
        return f"Write `{text}:`, with a colon."
    pair = _PAIR.fullmatch(text)
    if pair is None:
        return ""
    right = f"`{shorten_text(pair['key'])}: {shorten_text(pair['value'])}`"
    if pair["sign"] == ":":
        return f"Put a space after the colon: {right}."
    return f"Put a colon and a space between key and value: {right}."


def _fix_of_list(items: Sequence[Any]) -> str:
    """Return the fix for a list whose items are the pairs of a mapping."""
    if not items or not all(isinstance(item, Mapping) and len(item) == 1 for item in items):
        return ""
    if len(items) == 1:
        return f"Remove the `-` before `{shorten_text(next(iter(items[0])))}`."
    return "Remove the `-` before each key."


def _fix_of_steps(mapping: Mapping[str, Any]) -> str:
    """Return the fix for steps without the sign of an item of a list, or with one without a space."""
    names = {key.removeprefix("-") for key in mapping}
    if not names or not names <= set(operator_names()):
        return ""
    first = next(iter(mapping)).removeprefix("-")
    if any(key.startswith("-") for key in mapping):
        return f"Put a space after the `-` of each step: `- {first}:`."
    return f"Begin each step with `- `: `- {first}:`."


def no_break_space_fix(key: str) -> str:
    """Return the fix for a key with characters that look like spaces; empty if it has none."""
    if _NO_BREAK_SPACE not in key:
        return ""
    return "Replace each no-break space (U+00A0) by a space: it is a part of the key for YAML."


def quotes_fix(text: str) -> str:
    """Return the fix for a text with the quotation marks of a word processor; empty if it has none."""
    return "Replace the curly quotation marks by straight ones." if _QUOTES.search(text) else ""
