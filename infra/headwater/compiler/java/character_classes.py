"""Java's character classes, restricted to the characters of topic names."""

import string

from headwater.compiler.java.regular_languages import ALPHABET

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
