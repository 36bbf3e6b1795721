"""Java regular expressions of pattern sources, matched against whole topic names.

A pattern is parsed and becomes a regular language over the characters of topic names, so matching takes
linear time whatever the pattern: no nesting of repetitions can make it slow. What is not regular, or too
seldom to be worth it, is refused with a reason: back references, atomic groups, possessive repetition, word
boundaries, comment mode.
"""

from infra.compiler.java.pattern_parser import parse
from infra.compiler.java.pattern_tree import PatternInvalidError, PatternUnsupportedError, language
from infra.compiler.java.regular_languages import Algebra, TooComplexError


class UntranslatablePatternError(Exception):
    """The pattern cannot be evaluated; the message says what in it."""

    def __init__(self, reason: str, *, is_invalid_java: bool = False) -> None:
        super().__init__(reason)
        self.is_invalid_java = is_invalid_java


class JavaPattern:
    """A pattern source's regular expression.

    Raises:
        UntranslatablePatternError: when made or, if it needs too many states, when first matched.
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
        """Whether the whole of `topic` matches."""
        try:
            return self._algebra.matches(self._language, topic)
        except TooComplexError:
            raise UntranslatablePatternError("it is too complex") from None

    def prefixes(self) -> tuple[tuple[str, bool], ...]:
        """What all matching names are or begin with, sorted, each with whether it is a whole name.

        As few and as long as is useful: `orders-.*` has `orders-`, `(a|b)-in` the names `a-in` and `b-in`.
        The beginning of a pattern that says nothing about how names begin is empty.
        """
        try:
            return tuple(sorted(self._algebra.prefixes(self._language)))
        except TooComplexError:
            return (("", False),)
