"""Phrases for the texts of problems: what was found, what is allowed, the nearest spelling."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Any

from headwater.model.problems import shorten_text
from headwater.spec.locations import PathPart

_TYPES = {
    "object": ("a mapping",),
    "array": ("a list",),
    "string": ("text",),
    "integer": ("a whole number",),
    "number": ("a number",),
    "boolean": ("true", "false"),
    "null": ("nothing",),
}
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._/-]*")
_LONGEST_EXAMPLE = 60
_MOST_KEYS = 6
_LONGEST_WORD = 80
_MOST_WORDS = 1_000
"""Comparison is slow: longer words, and words after the first thousand, are skipped."""
_LIKENESS = 0.7


def quote_words(words: Iterable[str]) -> str:
    """Return `a`, `b`, `c`."""
    return ", ".join(f"`{word}`" for word in words)


def join_with_or(phrases: Sequence[str]) -> str:
    """Return a, b or c."""
    return phrases[0] if len(phrases) == 1 else ", ".join(phrases[:-1]) + " or " + phrases[-1]


def one_of(words: Sequence[str]) -> str:
    """Return `a`, `b` or `c`."""
    return join_with_or([f"`{word}`" for word in words])


def with_article(noun: str) -> str:
    """Return the noun with its article."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def capitalize(text: str) -> str:
    """Return the text with a capital first letter."""
    return text[:1].upper() + text[1:]


def type_names(names: str | Sequence[str]) -> str:
    """Return JSON Schema types in plain words."""
    return join_with_or(
        [phrase for name in ([names] if isinstance(names, str) else names) for phrase in _TYPES[name]]
    )


def such_as(phrase: str, schema: Mapping[str, Any]) -> str:
    """Return `phrase` with short examples of the schema; booleans need none."""
    examples = [
        yaml_literal(example) for example in schema.get("examples", ()) if not isinstance(example, bool)
    ]
    short = [example for example in examples if len(example) <= _LONGEST_EXAMPLE][:4]
    return f"{phrase}, such as {one_of(short)}" if short else phrase


def yaml_literal(value: object) -> str:
    """Return a value as YAML on one line."""
    match value:
        case bool() | None:
            return "null" if value is None else str(value).lower()
        case str():
            return value if _PLAIN.fullmatch(value) else json.dumps(value, ensure_ascii=False)
        case list():
            return f"[{', '.join(map(yaml_literal, value))}]"
        case dict():
            return "{" + ", ".join(f"{key}: {yaml_literal(item)}" for key, item in value.items()) + "}"
        case _:
            return str(value)


def first_repeated(values: Sequence[object]) -> str:
    """Return the first value that a list contains more than once."""
    seen: set[str] = set()
    for value in values:
        text = json.dumps(value, sort_keys=True, default=str)
        if text in seen:
            return f"{describe_value(value)} more than once"
        seen.add(text)
    return describe_value(values)


def describe_value(value: object) -> str:
    """Return a short description of a value."""
    match value:
        case bool() | None:
            return "nothing" if value is None else yaml_literal(value)
        case str():
            return f"`{shorten_text(value)}`" if value else "empty text"
        case list():
            return f"a list of {len(value)}" if value else "an empty list"
        case dict():
            keys = quote_words(shorten_text(key) for key in list(value)[:_MOST_KEYS])
            return f"a mapping with {keys}" if value else "an empty mapping"
        case _:
            return f"the number {shorten_text(str(value))}"


def describe_path(path: Sequence[PathPart]) -> str:
    """Return what the value at `path` is called in the document."""
    if not path:
        return "the document"
    last = path[-1]
    if isinstance(last, str):
        return f"`{shorten_text(last)}`"
    if len(path) > 1 and path[-2] in ("topology", "then"):
        return f"step {last + 1}"
    return f"item {last + 1} of {describe_path(path[:-1])}"


def nearest_word(word: str, allowed: Iterable[str]) -> str | None:
    """Return the allowed word that is most similar to `word`, None if none is similar."""
    if len(word) > _LONGEST_WORD:
        return None
    by_lower = {
        candidate.lower(): candidate
        for candidate in islice(allowed, _MOST_WORDS)
        if min(len(word), len(candidate)) * 2 >= _LIKENESS * (len(word) + len(candidate))
    }
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=_LIKENESS)
    return by_lower[found[0]] if found else None
