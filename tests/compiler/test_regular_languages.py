"""Regular languages match the same texts as Python's regular expressions, and combine as sets do."""

import re

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler.java.regular_languages import ALPHABET, Algebra, TooComplexError, both_cases

TEXTS = st.text("ab.-", max_size=6)


@attrs.frozen
class Pattern:
    """A pattern of Python; `expression` builds the same in an algebra."""

    text: str
    kind: str
    parts: tuple["Pattern", ...] = ()
    least: int = 0
    most: int | None = None

    def expression(self, algebra: Algebra) -> int:
        parts = [part.expression(algebra) for part in self.parts]
        match self.kind:
            case "chars":
                return algebra.chars(frozenset(self.text.strip("[]")))
            case "concat":
                return algebra.concat(parts)
            case "union":
                return algebra.union(parts)
            case _:
                return algebra.repeat(parts[0], self.least, self.most)


def _concat(parts: list[Pattern]) -> Pattern:
    return Pattern("".join(part.text for part in parts), "concat", tuple(parts))


def _union(parts: list[Pattern]) -> Pattern:
    return Pattern(f"(?:{'|'.join(part.text for part in parts)})", "union", tuple(parts))


def _repeat(part: Pattern, least: int, more: int | None) -> Pattern:
    most = None if more is None else least + more
    return Pattern(
        f"(?:{part.text}){{{least},{'' if most is None else most}}}", "repeat", (part,), least, most
    )


PATTERNS: st.SearchStrategy[Pattern] = st.recursive(
    st.sets(st.sampled_from("ab."), min_size=1).map(
        lambda chars: Pattern(f"[{''.join(sorted(chars))}]", "chars")
    ),
    lambda inner: (
        st.lists(inner, max_size=3).map(_concat)
        | st.lists(inner, min_size=1, max_size=3).map(_union)
        | st.builds(_repeat, inner, st.integers(0, 2), st.none() | st.integers(0, 2))
    ),
    max_leaves=6,
)


@given(PATTERNS, TEXTS)
def test_a_language_matches_what_the_pattern_matches(pattern: Pattern, text: str) -> None:
    algebra = Algebra()
    assert algebra.matches(pattern.expression(algebra), text) == bool(re.fullmatch(pattern.text, text))


@given(PATTERNS, PATTERNS, TEXTS)
def test_languages_combine_as_sets(one: Pattern, other: Pattern, text: str) -> None:
    algebra = Algebra()
    first, second = one.expression(algebra), other.expression(algebra)
    in_first, in_second = (algebra.matches(part, text) for part in (first, second))

    assert algebra.matches(algebra.union([first, second]), text) == (in_first or in_second)
    assert algebra.matches(algebra.intersection([first, second]), text) == (in_first and in_second)
    assert algebra.matches(algebra.complement(first), text) != in_first


def test_equal_expressions_have_one_number() -> None:
    algebra = Algebra()
    letter = algebra.chars(frozenset("a"))
    assert algebra.union([letter, letter]) == letter
    assert algebra.star(algebra.star(letter)) == algebra.star(letter)
    assert algebra.concat([letter, algebra.nothing]) == algebra.nothing
    assert algebra.complement(algebra.complement(letter)) == letter


def test_prefixes_of_a_language_say_which_topics_it_may_match() -> None:
    algebra = Algebra()
    orders = algebra.concat([algebra.chars(frozenset(letter)) for letter in "orders"])
    digits = algebra.star(algebra.chars(frozenset("0123456789")))
    assert algebra.prefixes(orders) == {("orders", True)}
    assert algebra.prefixes(algebra.concat([orders, digits])) == {("orders", False)}
    assert algebra.prefixes(algebra.anything) == {("", False)}


def test_a_language_that_takes_too_much_memory_is_refused() -> None:
    algebra = Algebra()
    many = algebra.repeat(algebra.repeat(algebra.chars(frozenset("a")), 1_000, 1_000), 1_000, 1_000)
    with pytest.raises(TooComplexError):
        algebra.repeat(many, 1_000, 1_000)


def test_case_insensitive_characters_are_letters_in_both_cases() -> None:
    assert both_cases(frozenset("aZ.")) == frozenset("aAzZ.")
    assert both_cases(ALPHABET) == ALPHABET
