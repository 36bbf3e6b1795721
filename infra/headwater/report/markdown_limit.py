"""Markdown within the length that forges accept for comments and issues."""

import re
from collections.abc import Callable, Sequence

LIMIT = 65_536
"""The maximum length of a comment or an issue on GitHub, in characters.

GitLab allows a million, a summary of a job on GitHub 1 MiB.
"""
_MOST_ROWS = (None, 100, 20, 5)
"""The most rows of each table at each level of detail."""
_FENCE = re.compile(r"`{3,}")
_SENTENCE_LENGTH = 400


def shorten_markdown(
    write: Callable[[int | None], str], command: str, limit: int = LIMIT, *, omitted: str = ""
) -> str:
    """Return Markdown of at most `limit` characters; if it is shortened, a sentence at the end says so.

    `write` returns the document with at most so many rows in each table. If it is too long with the fewest
    rows, the end of the document is left out. The sentence recommends `command`; it begins with `omitted`,
    which says what `write` always leaves out.
    """
    text = write(None)
    if not omitted and len(text) <= limit:
        return text
    available = limit - _SENTENCE_LENGTH
    left_out = [omitted] if omitted else []
    for rows in _MOST_ROWS:
        text = text if rows is None else write(rows)
        in_tables = [] if rows is None else [f"tables have at most {rows} rows"]
        if len(text) <= available and (omitted or in_tables):
            return f"{text.rstrip()}\n\n{_sentence(limit, command, [*left_out, *in_tables])}"
    left_out += [f"tables have at most {_MOST_ROWS[-1]} rows", "the end is left out"]
    return f"{_cut_lines(text, available).rstrip()}\n\n{_sentence(limit, command, left_out)}"


def _sentence(limit: int, command: str, left_out: Sequence[str]) -> str:
    shortened = ", ".join(left_out)
    return (
        f"*This report is shortened: {shortened}, because comments and issues on GitHub have at most "
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
