"""Markdown within the length that forges accept for comments and issues."""

import re
from collections.abc import Callable

LIMIT = 65_536
"""The maximum length of a comment or an issue on GitHub, in characters.

GitLab allows a million, a summary of a job on GitHub 1 MiB.
"""
_MOST_ROWS = (100, 20, 5)
"""The most rows of each table at each level of detail."""
_FENCE = re.compile(r"`{3,}")
_SENTENCE_LENGTH = 300


def shorten_markdown(write: Callable[[int | None], str], command: str, limit: int = LIMIT) -> str:
    """Return Markdown of at most `limit` characters; if it is shortened, a sentence at the end says so.

    `write` returns the document with at most so many rows in each table. If it is too long with the fewest
    rows, the end of the document is left out. The sentence recommends `command`.
    """
    text = write(None)
    if len(text) <= limit:
        return text
    available = limit - _SENTENCE_LENGTH
    for rows in _MOST_ROWS:
        text = write(rows)
        if len(text) <= available:
            return f"{text.rstrip()}\n\n{_sentence(limit, command, f'tables have at most {rows} rows')}"
    left_out = f"tables have at most {_MOST_ROWS[-1]} rows, and the end is left out"
    return f"{_cut_lines(text, available).rstrip()}\n\n{_sentence(limit, command, left_out)}"


def _sentence(limit: int, command: str, left_out: str) -> str:
    return (
        f"*This report is shortened: {left_out}, because comments and issues on GitHub have at most "
        f"{limit:,} characters. `{command}` shows all.*\n"
    )


def _cut_lines(text: str, limit: int) -> str:
    """Return the first lines of a Markdown text, at most `limit` characters; a code block is closed."""
    kept: list[str] = []
    remaining, fence = limit, ""
    for line in text.split("\n"):
        remaining -= len(line) + 1
        if remaining < len(fence) + 1:
            return "\n".join([*kept, *([fence] if fence else [])])
        kept.append(line)
        if found := _FENCE.match(line):
            fence = "" if fence == found.group() else fence or found.group()
    return text
