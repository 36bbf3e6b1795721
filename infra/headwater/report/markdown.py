"""Texts of other people, escaped for terminals, logs of pipelines and Markdown, cut to what forges accept."""

import re
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from html import escape
from typing import TypeVar

from headwater.model.problems import first_names

_Item = TypeVar("_Item")
_Reason = TypeVar("_Reason", bound=Hashable)
_MOST_NAMES = 3


_COMMAND = re.compile(r"^(\s*):(?=:.*::)|#(?=#\w*\[)")
"""The sign that makes a line a command of a pipeline: `::NAME::`, `##[NAME]` or `##vso[NAME]`.

GitHub's runner executes the first one after spaces, the second one anywhere in a line, and reads both outputs
of a step (actions/runner, `ActionCommand.TryParseV2` and `TryParse`); the third one is for Azure Pipelines.
"""


def printable(text: str) -> str:
    """Return `text` on one line: line breaks and tabs become spaces, other control characters escapes.

    The line is no command for a pipeline in whose log it is printed.
    """
    line = text if text.isprintable() else "".join(_escape_character(character) for character in text)
    return without_command(line)


def without_command(line: str) -> str:
    """Return a line of a log in which the signs of commands are escapes."""
    if "::" not in line and "##" not in line:
        return line
    return _COMMAND.sub(lambda sign: f"{sign[1] or ''}\\x{ord(sign[0][-1]):02x}", line)


def _escape_character(character: str) -> str:
    if character in "\n\r\t":
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")


_PROSE = re.compile(r"([\\`*_{}\[\]<>|~#&])")
_AT_SIGN = "@\N{ZERO WIDTH SPACE}"


def code_span(text: str) -> str:
    """Return a code span that is valid in a table; an `@name` in it is not a mention."""
    shown = printable(text).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def escape_prose(text: str) -> str:
    """Return Headwater's own sentence with its code spans kept and everything else escaped."""
    parts = re.split(r"`([^`]*)`", printable(text))
    return "".join(
        code_span(part) if number % 2 else _PROSE.sub(r"\\\1", part).replace("@", _AT_SIGN)
        for number, part in enumerate(parts)
    )


def inline_html(text: str) -> str:
    """Return text escaped for use between HTML tags."""
    return escape(printable(text)).replace("@", _AT_SIGN)


def code_block(text: str, language: str = "") -> str:
    """Return a fenced code block with a fence longer than any in `text`.

    No line is a command for a pipeline.
    """
    text = "\n".join(map(without_command, text.split("\n")))
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def markdown_table(
    head: str, items: Sequence[_Item], row_of: Callable[[_Item], str], most: int | None = None
) -> Iterator[str]:
    """Yield the parts of a table with a row for each of the first items, and how many more there are."""
    yield f"{head}\n{'|---' * (head.count('|') - 1)}|"
    yield from map(row_of, items[:most])
    if more := len(items) - len(items[:most]):
        yield f"\n… and {more:,} more"
    yield ""


def grouped_names(pairs: Iterable[tuple[_Reason, str]]) -> Iterator[tuple[_Reason, str]]:
    """Yield each reason once, with the rows of a table that it is about: ` (`a`, `b` and 2 more)`.

    Empty if all rows have the same reason. `pairs` has the reason and the name of each row.
    """
    names: dict[_Reason, list[str]] = {}
    for reason, name in pairs:
        names.setdefault(reason, []).append(code_span(name))
    for reason, found in names.items():
        yield reason, f" ({first_names(found, _MOST_NAMES)})" if len(names) > 1 else ""


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
            return f"{text.rstrip()}\n\n{_shortened_sentence(limit, command, [*left_out, *in_tables])}"
    left_out += [f"tables have at most {_MOST_ROWS[-1]} rows", "the end is left out"]
    return f"{_cut_lines(text, available).rstrip()}\n\n{_shortened_sentence(limit, command, left_out)}"


def _shortened_sentence(limit: int, command: str, left_out: Sequence[str]) -> str:
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
