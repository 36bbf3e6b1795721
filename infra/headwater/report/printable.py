"""Escaping for terminals: text from documents and clusters must not send control characters."""


def printable(text: str) -> str:
    """Return `text` on one line: line breaks and tabs become spaces, other control characters escapes."""
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
