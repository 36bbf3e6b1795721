"""Regular languages over the characters of topic names, matched in linear time by derivatives.

An `Algebra` numbers expressions; equal ones have the same number. Derivatives (Brzozowski 1964) support
intersection and complement, which look-ahead needs.
"""

import string
from collections.abc import Iterable

ALPHABET = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")
"""All characters that a topic name may have."""

_MOST_EXPRESSIONS = 20_000
_MOST_PARTS = 3_000_000
"""How many parts of expressions may be combined: about a second of work and 100 MiB."""
_DEEPEST_DERIVATIVE = 100
"""Each level needs up to five of Python's 1,000 stack frames."""
_MOST_BRANCHES = 8
_LONGEST_NAME = 249
_MOST_PREFIXES = 20

_CHARS, _CAT, _ALT, _AND, _NOT, _STAR = range(6)
_Key = tuple[int, object]


class TooComplexError(Exception):
    """The language needs too many expressions, or too large ones."""


class Algebra:
    """Creates expressions; `nothing` matches no text, `empty` the empty text, `anything` all texts."""

    def __init__(self) -> None:
        self._keys: list[_Key] = []
        self._ids: dict[_Key, int] = {}
        self._nullable: list[bool] = []
        self._derived: dict[tuple[int, str], int] = {}
        self._combined = 0
        self._depth = 0
        self.nothing = self._make((_ALT, frozenset[int]()), nullable=False)
        self.empty = self._make((_CAT, ()), nullable=True)
        self.anything = self._make((_NOT, self.nothing), nullable=True)

    def chars(self, allowed: frozenset[str]) -> int:
        """Return the expression of one of the characters `allowed`."""
        allowed &= ALPHABET
        return self._make((_CHARS, allowed), nullable=False) if allowed else self.nothing

    def concat(self, parts: Iterable[int]) -> int:
        flat: list[int] = []
        for part in parts:
            kind, inner = self._keys[part]
            added = inner if kind == _CAT else [part]
            self._count_parts(len(added))  # type: ignore[arg-type]
            flat.extend(added)  # type: ignore[arg-type]
        if self.nothing in flat:
            return self.nothing
        if len(flat) == 1:
            return flat[0]
        return self._make((_CAT, tuple(flat)), nullable=all(self._nullable[part] for part in flat))

    def union(self, parts: Iterable[int]) -> int:
        flat = self._flat(_ALT, parts)
        if self.anything in flat:
            return self.anything
        if len(flat) == 1:
            return next(iter(flat))
        return self._make((_ALT, flat), nullable=any(self._nullable[part] for part in flat))

    def intersection(self, parts: Iterable[int]) -> int:
        flat = self._flat(_AND, parts) - {self.anything}
        if self.nothing in flat:
            return self.nothing
        if not flat:
            return self.anything
        if len(flat) == 1:
            return next(iter(flat))
        return self._make((_AND, flat), nullable=all(self._nullable[part] for part in flat))

    def complement(self, part: int) -> int:
        """Return the expression of all texts that `part` does not match."""
        kind, inner = self._keys[part]
        if kind == _NOT:
            return inner  # type: ignore[return-value]
        return self._make((_NOT, part), nullable=not self._nullable[part])

    def star(self, part: int) -> int:
        """Return `part` repeated any number of times."""
        if part in {self.nothing, self.empty}:
            return self.empty
        if self._keys[part][0] == _STAR:
            return part
        return self._make((_STAR, part), nullable=True)

    def repeat(self, part: int, least: int, most: int | None) -> int:
        """Return `part` repeated from `least` to `most` times; None = without limit."""
        if most is None:
            return self.concat([*[part] * least, self.star(part)])
        if self._nullable[part]:  # fewer repetitions match the same texts: no need to nest optional ones
            return self.concat([part] * most)
        tail = self.empty
        for _ in range(most - least):
            tail = self.union([self.empty, self.concat([part, tail])])
        return self.concat([*[part] * least, tail])

    def matches(self, part: int, text: str) -> bool:
        """Return whether `part` matches the whole `text`."""
        for character in text:
            part = self._derive(part, character)
        return self._nullable[part]

    def prefixes(self, part: int) -> set[tuple[str, bool]]:
        """Return the matching texts (True), or prefixes of them (False).

        A prefix is extended while few characters may follow and nothing repeats. It ends where more branches
        would exceed the maximal number of prefixes.
        """
        return self._prefixes(part, "", frozenset(), _MOST_PREFIXES) or {("", False)}

    def _prefixes(
        self, part: int, text: str, before: frozenset[int], limit: int
    ) -> set[tuple[str, bool]] | None:
        """Return None if there are more than `limit`."""
        following = {c: after for c in sorted(ALPHABET) if (after := self._derive(part, c)) != self.nothing}
        is_long = bool(following) and len(text) >= _LONGEST_NAME
        if len(following) > min(limit, _MOST_BRANCHES) or part in before or is_long:
            return {(text, False)}
        found = {(text, True)} if self._nullable[part] else set()
        for character, after in following.items():
            inner = self._prefixes(after, text + character, before | {part}, limit - len(found))
            if inner is None or len(found := found | inner) > limit:
                return {(text, False)} if limit == _MOST_PREFIXES else None
        return found

    def _flat(self, kind: int, parts: Iterable[int]) -> frozenset[int]:
        flat: set[int] = set()
        for part in parts:
            key = self._keys[part]
            added = key[1] if key[0] == kind else [part]
            self._count_parts(len(added))  # type: ignore[arg-type]
            flat.update(added)  # type: ignore[arg-type]
        return frozenset(flat)

    def _count_parts(self, number: int) -> None:
        """Count parts before they are combined: `((a{1000}){1000}){1000}` would need a billion of them."""
        self._combined += number
        if self._combined > _MOST_PARTS:
            raise TooComplexError

    def _make(self, key: _Key, *, nullable: bool) -> int:
        found = self._ids.get(key)
        if found is None:
            if len(self._keys) >= _MOST_EXPRESSIONS:
                raise TooComplexError
            found = self._ids[key] = len(self._keys)
            self._keys.append(key)
            self._nullable.append(nullable)
        return found

    def _derive(self, part: int, character: str) -> int:
        """Return the expression of what follows `character` (Brzozowski's derivative)."""
        known = self._derived.get((part, character))
        if known is not None:
            return known
        if self._depth >= _DEEPEST_DERIVATIVE:
            raise TooComplexError
        self._depth += 1
        try:
            derived = self._derived[part, character] = self._derivative(part, character)
        finally:
            self._depth -= 1
        return derived

    def _derivative(self, part: int, character: str) -> int:
        kind, inner = self._keys[part]
        match kind, inner:
            case 0, frozenset():
                return self.empty if character in inner else self.nothing
            case 1, tuple():
                return self._derive_concat(inner, character)
            case 2, frozenset():
                return self.union(self._derive(each, character) for each in inner)
            case 3, frozenset():
                return self.intersection(self._derive(each, character) for each in inner)
            case 4, int():
                return self.complement(self._derive(inner, character))
            case _, int():
                return self.concat([self._derive(inner, character), part])
        raise AssertionError(kind)

    def _derive_concat(self, parts: tuple[int, ...], character: str) -> int:
        found = []
        for index, part in enumerate(parts):
            after = self._derive(part, character)
            if after != self.nothing:
                found.append(self.concat([after, *parts[index + 1 :]]))
            if not self._nullable[part]:
                break
        return self.union(found)


_LOWER = frozenset(string.ascii_lowercase)
_UPPER = frozenset(string.ascii_uppercase)
_DIGITS = frozenset(string.digits)
_LETTERS = _LOWER | _UPPER
_WORD = _LETTERS | _DIGITS | {"_"}
_PUNCTUATION = ALPHABET - _LETTERS - _DIGITS
_NONE: frozenset[str] = frozenset()

SHORTHANDS = {
    "d": _DIGITS,
    "D": ALPHABET - _DIGITS,
    "w": _WORD,
    "W": ALPHABET - _WORD,
    "s": _NONE,
    "S": ALPHABET,
    "h": _NONE,
    "H": ALPHABET,
    "v": _NONE,
    "V": ALPHABET,
}
"""Escape → characters; topic names contain no white space."""

CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}

PROPERTIES = {
    "Lower": _LOWER,
    "Upper": _UPPER,
    "ASCII": ALPHABET,
    "Alpha": _LETTERS,
    "Digit": _DIGITS,
    "Alnum": _LETTERS | _DIGITS,
    "Punct": _PUNCTUATION,
    "Graph": ALPHABET,
    "Print": ALPHABET,
    "Blank": _NONE,
    "Cntrl": _NONE,
    "XDigit": frozenset(string.hexdigits),
    "Space": _NONE,
    "L": _LETTERS,
    "Lu": _UPPER,
    "Ll": _LOWER,
    "N": _DIGITS,
    "Nd": _DIGITS,
    "P": _PUNCTUATION,
    "Pc": frozenset("_"),
    "Pd": frozenset("-"),
    "Po": frozenset("."),
    "IsL": _LETTERS,
    "IsLu": _UPPER,
    "IsLl": _LOWER,
    "IsN": _DIGITS,
    "IsNd": _DIGITS,
    "IsP": _PUNCTUATION,
    "IsAlphabetic": _LETTERS,
    "IsLetter": _LETTERS,
    "IsDigit": _DIGITS,
    "IsLowercase": _LOWER,
    "IsUppercase": _UPPER,
    "IsPunctuation": _PUNCTUATION,
    "IsWhite_Space": _NONE,
    "IsLatin": _LETTERS,
    "IsASCII": ALPHABET,
    "InBasicLatin": ALPHABET,
    "javaLowerCase": _LOWER,
    "javaUpperCase": _UPPER,
}

CASED = frozenset(
    {
        "Lower",
        "Upper",
        "Lu",
        "Ll",
        "IsLu",
        "IsLl",
        "IsLowercase",
        "IsUppercase",
        "javaLowerCase",
        "javaUpperCase",
    }
)
"""Properties whose meaning under CASE_INSENSITIVE differs between Java releases."""


def both_cases(characters: frozenset[str]) -> frozenset[str]:
    """Return the characters in both ASCII cases, as CASE_INSENSITIVE matches them."""
    return (
        characters
        | {c.lower() for c in characters if c in _UPPER}
        | {c.upper() for c in characters if c in _LOWER}
    )
