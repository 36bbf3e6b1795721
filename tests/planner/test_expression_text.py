"""White space in expressions."""

import pytest

from headwater.planner.expression_text import normalize_expression


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("value.n>0", "  value.n \n >\t0 "),
        ("a and b", "a  and\nb"),
        ("coalesce(value, 0)", "coalesce( value,0 )"),
        ("array(1, -1)[0]", "array( 1,-1 ) [ 0 ]"),
        ("key = 'a  b'", "key='a  b'"),
        ("`a b` + 1", "`a b`+1"),
        (r"'it\'s' || x", r"'it\'s'||x"),
    ],
)
def test_white_space_outside_quotes_does_not_count(one: str, other: str) -> None:
    assert normalize_expression(one) == normalize_expression(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("not x", "notx"),
        ("'a b'", "'a  b'"),
        ("`a b`", "`ab`"),
        ('"a b"', '"ab"'),
        (r"'it\'s  a' || ' b'", r"'it\'s a' || ' b'"),
        ("a - -1", "a --1"),
        ("a -- x\n + b", "a -- x + b"),
        (r"concat(r'\', 'a  b')", r"concat(r'\', 'a b')"),
        ("a /* x */ + b", "a /* x*/ + b"),
    ],
)
def test_white_space_that_may_matter_counts(one: str, other: str) -> None:
    assert normalize_expression(one) != normalize_expression(other)


@pytest.mark.parametrize("text", ["", " ", "'", "a '", "-- x"])
def test_any_text_is_accepted(text: str) -> None:
    assert normalize_expression(text).strip() == text.strip()


def test_the_time_grows_with_the_length_of_the_text_only() -> None:
    """Each quote would otherwise be searched to the end of the text."""
    assert len(normalize_expression("'" + "\\'" * 200_000)) == 400_001
