"""Values of JSON: what Jackson writes and reads, and schemas."""

import json
import math
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes import DeserializationError, SerializationError, plain_serde

SCHEMA = json.dumps({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}})


def test_json_is_written_as_by_jackson() -> None:
    """The text is what Jackson's `ObjectMapper` writes, as Kafka's `JsonSerializer` does."""
    value = {
        "amounts": [12345678.5, 10000000.0, 9999999.5, 0.001, 0.0005, -1e-05, 1e16, 1e20, -0.0, 2, 10**30],
        "3e-05,": "\\" + '"10000000.0 3e-05',
        "id": "7d3e-4-12",
        "\x1b": "\x1f\x0b\x10\x7f \\u001f \\\\u001f \n",
    }
    written = (
        '{"amounts":[1.23456785E7,1.0E7,9999999.5,0.001,5.0E-4,-1.0E-5,1.0E16,1.0E20,-0.0,2,'
        r'1000000000000000000000000000000],"3e-05,":"\\\"10000000.0 3e-05","id":"7d3e-4-12",'
        r'"\u001B":"\u001F\u000B\u0010'
        "\x7f"
        r' \\u001f \\\\u001f \n"}'
    )
    assert plain_serde("json").serialize(value).decode() == written
    assert plain_serde("json").deserialize(written.encode()) == value


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("1e400", '"Infinity"'),
        ("-1e400", '"-Infinity"'),
        ('{"a":{"b":1e400},"Infinity":"NaN,"}', '{"a":{"b":"Infinity"},"Infinity":"NaN,"}'),
        ("[1e309,1.8e308,1e-400,-1e-400,1e5]", '["Infinity","Infinity",0.0,-0.0,100000.0]'),
        ("1" + "0" * 400 + ".5", '"Infinity"'),
    ],
)
def test_a_number_that_exceeds_doubles_is_copied_as_by_jackson(text: str, written: str) -> None:
    """The texts are what `ObjectMapper#writeValueAsBytes` writes of what `readTree` reads."""
    serde = plain_serde("json")
    assert serde.serialize(serde.deserialize(text.encode())).decode() == written


@pytest.mark.parametrize(
    ("data", "read"),
    [
        (b'{"a":1} x', {"a": 1}),
        (b'{"a":1}{', {"a": 1}),
        (b'["a"]]\xff', ["a"]),
        (b'"a"x', "a"),
        (b"1 2", 1),
        (b"1.5\n}", 1.5),
        (b"true,", True),
        (b"null :", None),
        (b'\xef\xbb\xbf {"a":1}', {"a": 1}),
        ('{"a":"é"}'.encode("utf-16"), {"a": "é"}),
        ('{"a":"é"}'.encode("utf-16-be"), {"a": "é"}),
        ('{"a":1}'.encode("utf-32-le"), {"a": 1}),
    ],
)
def test_json_is_read_as_by_jackson(data: bytes, read: Value) -> None:
    """The values are what `ObjectMapper#readTree` reads, as Kafka's `JsonDeserializer` does."""
    assert plain_serde("json").deserialize(data) == read


@pytest.mark.parametrize(
    "data",
    [
        *(b"1x", b"1,", b"01", b"1.", b"truex", b"true1", b"true_", b"null\xff", "trueé".encode(), b"nul"),
        *(b"[1,]", b"}", b'"a', b'"\xff"', b"\xef\xbb\xbf\xef\xbb\xbf1", b" \xef\xbb\xbf1", b"NaN", b"{a:1}"),
    ],
)
def test_what_jackson_refuses_is_no_json(data: bytes) -> None:
    with pytest.raises(DeserializationError):
        plain_serde("json").deserialize(data)


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b'{"a":', "Expecting value at character 5"),
        (b'"a', "Unterminated string starting at character 0"),
        (b'"\t"', "Invalid control character at character 1"),
    ],
)
def test_the_fault_names_the_character(data: bytes, fault: str) -> None:
    with pytest.raises(DeserializationError) as raised:
        plain_serde("json").deserialize(data)
    assert str(raised.value) == f"invalid json value: {fault}"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ([10**5000], "a whole number has more than 4,300 digits"),
        ({"a": {1j}}, "it contains a value of the Python type set"),
        ({("secret",): 1}, "it contains something that JSON cannot represent"),
    ],
)
def test_the_fault_says_what_json_cannot_represent(value: Value, fault: str) -> None:
    with pytest.raises(SerializationError) as raised:
        plain_serde("json").serialize(value)
    assert str(raised.value) == f"the value cannot be written as json: {fault}"


def test_a_number_of_thousands_of_digits_is_named() -> None:
    with pytest.raises(DeserializationError) as raised:
        plain_serde("json").deserialize(b'{"a": ' + b"1" * 5000 + b"}")
    assert str(raised.value) == "invalid json value: a whole number has more than 4,300 digits"


@pytest.mark.parametrize("data", [b"", b" ", b"\n"])
def test_an_empty_value_is_no_json(data: bytes) -> None:
    """Jackson reads a `MissingNode`, which no other program can read."""
    with pytest.raises(DeserializationError):
        plain_serde("json").deserialize(data)


def test_json_has_characters_beyond_16_bits_as_escapes() -> None:
    """The bytes are what `ObjectMapper#writeValueAsBytes` writes."""
    serde = plain_serde("json")
    value = {"\U0001f600": "é\uffff\U00010000\U0010ffff", "a": "\ud83d"}
    written = '{"\\uD83D\\uDE00":"é\uffff\\uD800\\uDC00\\uDBFF\\uDFFF","a":"\\uD83D"}'
    assert serde.serialize(value).decode() == written
    assert serde.deserialize(written.encode()) == value


def test_json_has_nan_and_infinities_as_text() -> None:
    """The text is what `ObjectMapper` writes of such doubles, as Kafka's `JsonSerializer` does."""
    value = {"NaN": [math.nan, math.inf, -math.inf, 1e20], "\x1b": '"Infinity\\'}
    written = r'{"NaN":["NaN","Infinity","-Infinity",1.0E20],"\u001B":"\"Infinity\\"}'
    assert plain_serde("json").serialize(value).decode() == written


@given(st.recursive(st.floats(allow_nan=False, allow_infinity=False) | st.text(), st.lists))
def test_json_numbers_are_read_as_written(value: Value) -> None:
    json_serde = plain_serde("json")
    written = json_serde.serialize(value)
    assert json_serde.deserialize(written) == value
    assert json_serde.serialize(json_serde.deserialize(written)) == written


def test_json_has_timestamps_as_text() -> None:
    value = {"day": date(99, 2, 28), "at": datetime(99, 2, 28, 12, 0, 0, 5999, tzinfo=UTC)}
    assert plain_serde("json").serialize(value) == b'{"day":"0099-02-28","at":"0099-02-28T12:00:00.005Z"}'
    value = {"day": date(2024, 2, 29), "at": datetime(2024, 2, 29, 12, 0, 0, 5000, tzinfo=UTC)}
    written = plain_serde("json").serialize(value)
    assert written == b'{"day":"2024-02-29","at":"2024-02-29T12:00:00.005Z"}'


def test_json_with_a_schema() -> None:
    serde = plain_serde("json:order.json", SCHEMA)
    assert serde.deserialize(b'{"id": 1, "more": true}') == {"id": 1, "more": True}
    for data in (b'{"id": "1"}', b"[]", b'{"hush": 1}'):
        with pytest.raises(DeserializationError, match="schema") as fault:
            serde.deserialize(data)
        assert "hush" not in str(fault.value)
    with pytest.raises(SerializationError):
        serde.serialize({})


def test_a_schema_with_external_references_is_rejected() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        plain_serde("json:far.json", json.dumps({"$ref": "http://nowhere.invalid/schema"}))
    within = {"$defs": {"id": {"type": "integer"}}, "properties": {"id": {"$ref": "#/$defs/id"}}}
    assert plain_serde("json:near.json", json.dumps(within)).deserialize(b'{"id":1}') == {"id": 1}


def test_json_that_can_be_read_can_be_compared() -> None:
    lists = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
    deep = b"[" * 800 + b"]" * 800
    one, other = (plain_serde("json").deserialize(deep) for _ in range(2))
    assert plain_serde("json").equal(one, other)
    assert not plain_serde("json").equal(one, one[0])
    with pytest.raises(DeserializationError, match="nested too deeply"):
        plain_serde("json:n.json", json.dumps(lists)).deserialize(deep)


def test_a_json_schema_in_thousands_of_others_is_rejected() -> None:
    with pytest.raises(ValueError, match="nested too deeply"):
        plain_serde("json:n.json", '{"not":' * 2_000 + "{}" + "}" * 2_000)
