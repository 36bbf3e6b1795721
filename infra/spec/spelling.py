"""The nearest allowed spelling of a mistyped word."""

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

_LONGEST = 80
_MOST = 1_000
"""Comparing is slow: a longer word, or one of thousands, is not worth the wait."""
_LIKENESS = 0.7


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that `word` was probably meant to be, None if none is near."""
    if len(word) > _LONGEST:
        return None
    by_lower = {
        candidate.lower(): candidate
        for candidate in islice(allowed, _MOST)
        if min(len(word), len(candidate)) * 2 >= _LIKENESS * (len(word) + len(candidate))
    }
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=_LIKENESS)
    return by_lower[found[0]] if found else None
