"""Text from outside in Markdown: nothing of it may become markup, a link or the name of a person."""

import re
from html import escape

from infra.report.printable import printable

_PROSE = re.compile(r"([\\`*_{}\[\]<>|~#&])")
_NOBODY = "@\N{ZERO WIDTH SPACE}"


def code(text: str) -> str:
    """Return a code span, which may stand in a table; forges call nobody who is named in one."""
    shown = printable(text).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if shown[0] == "`" or shown[-1] == "`" else ""
    return f"{fence}{pad}{shown}{pad}{fence}"


def prose(text: str) -> str:
    """Return our own sentences, whose code is between backticks, with everything else escaped."""
    parts = re.split(r"`([^`]*)`", printable(text))
    return "".join(
        code(part) if number % 2 else _PROSE.sub(r"\\\1", part).replace("@", _NOBODY)
        for number, part in enumerate(parts)
    )


def inline_html(text: str) -> str:
    """Return text to stand between HTML tags."""
    return escape(printable(text)).replace("@", _NOBODY)


def block(text: str, language: str = "") -> str:
    """Return a fenced block that nothing in `text` can end."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}\n"
