"""Durations in problem texts: a document that is corrected as a text says has the duration."""

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.durations import duration_text, parse_duration
from headwater.spec.scalars import plain_scalar
from headwater.spec.schema import document_schema


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (0, "0ms"),
        (1, "1ms"),
        (-5_000, "-5s"),
        (1_500, "1500ms"),
        (90_000, "90s"),
        (5_400_000, "90m"),
        (90_000_000, "25h"),
        (7 * 86_400_000, "7d"),
        (None, "none"),
    ],
)
def test_a_duration_is_written_in_its_largest_whole_unit(duration: int | None, text: str) -> None:
    assert duration_text(duration) == text


@given(st.integers(min_value=-(2**63) + 1, max_value=2**63 - 1))
def test_documents_read_the_text_as_the_same_duration(duration: int) -> None:
    scalar = plain_scalar(duration_text(duration))
    jsonschema.validate(scalar, document_schema()["$defs"]["signedDuration"])
    assert isinstance(scalar, int | str)
    assert parse_duration(scalar) == duration
