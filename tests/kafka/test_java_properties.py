"""`.properties` texts as java.util.Properties reads them."""

import pytest

from headwater.kafka.connection import read_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a = b ", {"a": "b "}),
        ("a:b", {"a": "b"}),
        ("a b c", {"a": "b c"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("a==b", {"a": "=b"}),
        ("# c\n! c\n\n  \na=1", {"a": "1"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=1,\\\n    2,\\\n    3", {"a": "1,2,3"}),
        ("a=1\\\\\nb=2", {"a": "1\\", "b": "2"}),
        ("a=1\\", {"a": "1"}),
        (r"a\=b\:c=d", {"a=b:c": "d"}),
        (r"a=\u00e9\t\n\q", {"a": "é\t\nq"}),
        ("a=1\na=2", {"a": "2"}),
        ("  a=1", {"a": "1"}),
    ],
)
def test_properties(text: str, expected: dict[str, str]) -> None:
    assert read_properties(text) == expected
