"""Text from documents and clusters may hold anything; printed, it must not move a cursor or hide a line."""


def printable(text: str) -> str:
    """Return `text` with spaces for line breaks and tabs, and escapes for what a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return " "
    return character if character.isprintable() else character.encode("unicode_escape").decode("ascii")
