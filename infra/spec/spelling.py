"""The nearest allowed spelling of a mistyped word."""

from collections.abc import Collection
from difflib import get_close_matches

_LONGEST = 80


def nearest(word: str, allowed: Collection[str]) -> str | None:
    """The allowed word that `word` was probably meant to be, None if none is near."""
    if len(word) > _LONGEST:
        return None
    by_lower = {candidate.lower(): candidate for candidate in allowed}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.7)
    return by_lower[found[0]] if found else None
