"""Escapes texts of other people for terminals, logs of pipelines, and Markdown."""

import re
from collections.abc import Hashable, Iterable, Iterator
from html import escape
from typing import TypeVar

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


def code(text: str) -> str:
    """Return a code span that is valid in a table; an `@name` in it is not a mention."""
    shown = printable(text).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def prose(text: str) -> str:
    """Return Headwater's own sentence with its code spans kept and everything else escaped."""
    parts = re.split(r"`([^`]*)`", printable(text))
    return "".join(
        code(part) if number % 2 else _PROSE.sub(r"\\\1", part).replace("@", _AT_SIGN)
        for number, part in enumerate(parts)
    )


def inline_html(text: str) -> str:
    """Return text escaped for use between HTML tags."""
    return escape(printable(text)).replace("@", _AT_SIGN)


def block(text: str, language: str = "") -> str:
    """Return a fenced code block with a fence longer than any in `text`."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"


def grouped_names(pairs: Iterable[tuple[_Reason, str]]) -> Iterator[tuple[_Reason, str]]:
    """Yield each reason once, with the rows of a table that it is about: ` (`a`, `b` and 2 more)`.

    Empty if all rows have the same reason. `pairs` has the reason and the name of each row.
    """
    names: dict[_Reason, list[str]] = {}
    for reason, name in pairs:
        names.setdefault(reason, []).append(code(name))
    for reason, found in names.items():
        more = len(found) - _MOST_NAMES
        text = ", ".join(found[:_MOST_NAMES]) + (f" and {more:,} more" if more > 0 else "")
        yield reason, f" ({text})" if len(names) > 1 else ""
