"""The expected texts are the answers of `Double#toString` of JDK 25."""

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.compiler.java.config_values import double_text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.001, "0.001"),
        (3e-4, "3.0E-4"),
        (-1.1e-5, "-1.1E-5"),
        (9999999.5, "9999999.5"),
        (1e7, "1.0E7"),
        (12345678.5, "1.23456785E7"),
        (2.0**53, "9.007199254740992E15"),
        (1e23, "1.0E23"),
        (2e23, "2.0E23"),
        (8.41e21, "8.41E21"),
        (4.9e-324, "4.9E-324"),
        (-9.9e-324, "-9.9E-324"),
        (2e-323, "2.0E-323"),
        (2.2e-322, "2.2E-322"),
        (math.nan, "NaN"),
        (math.inf, "Infinity"),
        (-math.inf, "-Infinity"),
    ],
)
def test_doubles_have_the_texts_of_java(number: float, text: str) -> None:
    assert double_text(number) == text


@given(st.integers(0, 2**64 - 1))
def test_a_text_is_read_as_the_same_double(bits: int) -> None:
    (number,) = struct.unpack(">d", struct.pack(">Q", bits))
    read = float(double_text(number))
    assert math.isnan(read) if math.isnan(number) else read == number
