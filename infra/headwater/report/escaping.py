"""Escapes texts of other people for terminals and Markdown."""

import re
from html import escape


def printable(text: str) -> str:
    """Return `text` on one line: line breaks and tabs become spaces, other control characters escapes."""
    if text.isprintable():
        return text
    return "".join(_escape_character(character) for character in text)


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
