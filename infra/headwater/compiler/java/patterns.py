"""Java regular expressions of pattern sources, matched against whole topic names.

A pattern is translated to a regular language over the characters of topic names, so matching always takes
linear time, even with nested repetitions. Constructs that are not regular or rarely used are not supported:
back references, atomic groups, possessive repetition, word boundaries, comment mode.
"""

from headwater.compiler.java.pattern_parser import parse
from headwater.compiler.java.pattern_tree import PatternInvalidError, PatternUnsupportedError, language
from headwater.compiler.java.regular_languages import Algebra, TooComplexError


class UntranslatablePatternError(Exception):
    """The pattern is invalid in Java or not supported; the message says what in it."""

    def __init__(self, reason: str, *, is_invalid_java: bool = False) -> None:
        super().__init__(reason)
        self.is_invalid_java = is_invalid_java


class JavaPattern:
    """The regular expression of a pattern source (`java.util.regex.Pattern`).

    Raises:
        UntranslatablePatternError: when it is created, or at a match that needs too many states.
    """

    def __init__(self, text: str) -> None:
        try:
            self._algebra = Algebra()
            self._language = language(parse(text), self._algebra)
        except PatternUnsupportedError as reason:
            raise UntranslatablePatternError(
                str(reason), is_invalid_java=isinstance(reason, PatternInvalidError)
            ) from None
        except TooComplexError:
            raise UntranslatablePatternError("it is too complex") from None

    def matches(self, topic: str) -> bool:
        """Return whether the whole name `topic` matches.

        Raises:
            UntranslatablePatternError: the match needs too many states.
        """
        try:
            return self._algebra.matches(self._language, topic)
        except TooComplexError:
            raise UntranslatablePatternError("it is too complex") from None

    def prefixes(self) -> tuple[tuple[str, bool], ...]:
        """Return prefixes of all matching names, sorted, each with whether it is a complete name.

        `orders-.*` has the prefix `orders-`, `(a|b)-in` has the names `a-in` and `b-in`. A pattern without a
        common prefix has the empty one.
        """
        try:
            return tuple(sorted(self._algebra.prefixes(self._language)))
        except TooComplexError:
            return (("", False),)
