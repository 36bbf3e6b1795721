"""PURE. Java regular expressions of pattern sources."""

import re


class UntranslatablePatternError(Exception):
    """The pattern uses what cannot be evaluated here."""


class JavaPattern:
    """A pattern source's regular expression, matched against whole topic names."""

    def __init__(self, text: str) -> None:
        try:
            self._pattern = re.compile(text)
        except re.error as error:
            raise UntranslatablePatternError(str(error)) from error

    def matches(self, topic: str) -> bool:
        return self._pattern.fullmatch(topic) is not None
