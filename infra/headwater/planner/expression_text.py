"""The text of an expression, the same for all ways to set white space in it."""

import re

_COMMENT = re.compile(r"--|/\*")
_RAW = re.compile(r"""\br['"]""", re.IGNORECASE)
_QUOTED = r"""'(?:\\.|[^'\\])*'?|"(?:\\.|[^"\\])*"?|`[^`]*`?"""
_PART = re.compile(rf"{_QUOTED}|\s+|\w+|.", re.DOTALL)
_BRACKETS = "()[],"


def normalize_expression(expression: str) -> str:
    """Return the expression with white space only where it separates words or operators.

    White space in quotes stays. An expression with a comment is returned as it is, because a line break ends
    a comment, and so is one with a raw string, which ends at other quotes.
    """
    if _RAW.search(expression):
        return expression
    parts = _PART.findall(expression.strip())
    if _COMMENT.search("".join(part for part in parts if not _is_quoted(part))):
        return expression
    kept = []
    for number, part in enumerate(parts):
        if not part.isspace():
            kept.append(part)
        elif _is_separator(parts[number - 1], parts[number + 1]):
            kept.append(" ")
    return "".join(kept)


def _is_quoted(part: str) -> bool:
    return part[0] in "'\"`"


def _is_separator(before: str, after: str) -> bool:
    """Return whether two parts without white space between them are, or may be, another text."""
    if before in _BRACKETS or after in _BRACKETS:
        return False
    return _is_word(before) == _is_word(after)


def _is_word(part: str) -> bool:
    return _is_quoted(part) or part[0].isalnum() or part[0] == "_"
