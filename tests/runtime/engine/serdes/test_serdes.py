"""Every format: the bytes that it writes, that it reads them, and what it rejects."""

import json
import math
from datetime import UTC, date, datetime
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.behaviors import Format
from headwater_spark.engine.records import Value, Windowed
from headwater_spark.engine.serdes import (
    DeserializationError,
    Response,
    SerializationError,
    Subscription,
    UnknownFormatError,
    changed_serde,
    plain_serde,
    response_serde,
    serde_of,
    subscription_serde,
)
from headwater_spark.engine.serdes.internal_topics import murmur3_128

SCHEMA = json.dumps({"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}})
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [
            {"name": "id", "type": "long"},
            {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
            {"name": "note", "type": ["null", "string"], "default": None},
        ],
    }
)


@pytest.mark.parametrize(
    ("name", "value", "written"),
    [
        ("string", "é", "c3a9"),
        ("string", "", ""),
        ("long", 1, "0000000000000001"),
        ("long", -2, "fffffffffffffffe"),
        ("integer", 258, "00000102"),
        ("short", -1, "ffff"),
        ("double", 1.5, "3ff8000000000000"),
        ("double", 2, "4000000000000000"),
        ("double", math.nan, "7ff8000000000000"),
        ("double", -math.nan, "7ff8000000000000"),
        ("double", math.inf - math.inf, "7ff8000000000000"),
        ("float", -2.0, "c0000000"),
        ("boolean", True, "01"),
        ("boolean", False, "00"),
        ("bytes", b"\x00\xff", "00ff"),
        ("uuid", "123E4567-e89b-12d3-a456-426614174000", b"123e4567-e89b-12d3-a456-426614174000".hex()),
        ("json", {"b": [1, None, "é"], "a": 1.5}, '{"b":[1,null,"é"],"a":1.5}'.encode().hex()),
        ("json", "text", b'"text"'.hex()),
    ],
)
def test_bytes_of_formats(name: str, value: Value, written: str) -> None:
    serde = plain_serde(name)
    assert serde.serialize(value).hex() == written
    assert serde.serialize(serde.deserialize(bytes.fromhex(written))).hex() == written


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("string", 1),
        ("long", 2**63),
        ("long", True),
        ("long", "1"),
        ("integer", 2**31),
        ("double", "1"),
        ("boolean", 1),
        ("bytes", "text"),
        ("uuid", "nonsense"),
        ("json", b"bytes"),
    ],
)
def test_values_that_a_format_cannot_represent(name: str, value: Value) -> None:
    with pytest.raises(SerializationError):
        plain_serde(name).serialize(value)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("long", b"\x00" * 7),
        ("integer", b""),
        ("double", b"\x00" * 9),
        ("boolean", b"\x02"),
        ("uuid", b"\xff"),
        ("json", b"{"),
        ("json", b"\xff"),
        ("json", b"NaN"),
        ("json", b"[" * 100_000),
    ],
)
def test_deserialization_errors_do_not_contain_the_bytes(name: str, data: bytes) -> None:
    with pytest.raises(DeserializationError) as fault:
        plain_serde(name).deserialize(b"secret" + data if name == "json" and data == b"{" else data)
    assert "secret" not in str(fault.value)


@pytest.mark.parametrize(
    ("data", "read"),
    [
        ("61ff62", "a\ufffdb"),
        ("c080", "\ufffd\ufffd"),
        ("e282", "\ufffd"),
        ("e08080", "\ufffd\ufffd\ufffd"),
        ("f09f98", "\ufffd"),
        ("f4908080", "\ufffd\ufffd\ufffd\ufffd"),
        ("eda080", "\ufffd"),
        ("61edb08062", "a\ufffdb"),
        ("eda078", "\ufffdx"),
        ("eda0", "\ufffd"),
        ("eda0bdedb880", "\ufffd\ufffd"),
        ("f09feda080", "\ufffd\ufffd"),
    ],
)
def test_malformed_text_is_read_as_in_java(data: str, read: str) -> None:
    """The texts are the answers of Kafka's `StringDeserializer`."""
    assert plain_serde("string").deserialize(bytes.fromhex(data)) == read


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("1-2-3-4-5", "00000001-0002-0003-0004-000000000005"),
        ("+1-2-3-4-5", "00000001-0002-0003-0004-000000000005"),
        ("1-2-3-4-123456789012345", "00000001-0002-0003-0004-456789012345"),
        ("ABCDEF12-1234-1234-1234-123456789012", "abcdef12-1234-1234-1234-123456789012"),
        ("", None),
        ("-1-2-3-4-5", None),
        ("1-2-3-4-", None),
        ("1-2-3-4-5-6", None),
        ("1-2-3-4-8000000000000000", None),
        ("12345678123412341234123456789012", None),
        ("{12345678-1234-1234-1234-123456789012}", None),
        ("urn:uuid:12345678-1234-1234-1234-123456789012", None),
        (" 12345678-1234-1234-1234-123456789012", None),
    ],
)
def test_a_uuid_is_read_as_in_java(text: str, read: str | None) -> None:
    """The texts are the answers of Kafka's `UUIDDeserializer`; None = it fails."""
    if read is not None:
        assert plain_serde("uuid").deserialize(text.encode()) == read
        return
    with pytest.raises(DeserializationError):
        plain_serde("uuid").deserialize(text.encode())


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


def test_avro_with_a_schema() -> None:
    serde = plain_serde("avro:order.avsc", AVRO)
    order = {"id": 1, "at": 1_704_067_200_000, "note": "x"}
    written = serde.serialize(order)
    assert serde.deserialize(written) == order
    assert serde.deserialize(serde.serialize({"id": 2, "at": 0, "note": None})) == {
        "id": 2,
        "at": 0,
        "note": None,
    }
    for data in (written[:-1], written + b"\x00", b""):
        with pytest.raises(DeserializationError):
            serde.deserialize(data)
    with pytest.raises(SerializationError):
        serde.serialize({"id": "text", "at": 0, "note": None})


@pytest.mark.parametrize(
    ("fields", "data", "fault"),
    [
        ([("next", ["null", "R"])], b"\2" * 300 + b"\0", "nested in more than 300 others"),
        ([("next", ["null", "R"])], b"\2" * 500_000 + b"\0", "nested in more than 300 others"),
        ([("all", {"type": "array", "items": "R"})], b"\2" * 5_000, "nested in more than 300 others"),
        ([("all", {"type": "map", "values": "R"})], b"\2\0" * 5_000, "nested in more than 300 others"),
        ([("all", {"type": "array", "items": "null"})], b"\xfe" * 5 + b"\1\0", "items that take no bytes"),
        (
            [("all", {"type": "array", "items": {"type": "record", "name": "E", "fields": []}})],
            b"\xff" * 5 + b"\1\0\0",
            "items that take no bytes",
        ),
        ([("a", ["null", "int"])], b"\1\2", "do not match"),
        ([("a", ["null", "int"])], b"\5\2", "do not match"),
        ([("a", {"type": "enum", "name": "E", "symbols": ["A", "B"]})], b"\1", "do not match"),
        ([("a", {"type": "enum", "name": "E", "symbols": ["A", "B"]}), ("b", "E")], b"\0\1", "do not match"),
        ([("next", ["null", "R"]), ("name", "string")], b"\2" * 200 + b"\0\x7f", "do not match"),
        ([("next", ["null", "R"]), ("name", "string")], b"\2" * 200 + b"\xff" * 99, "do not match"),
        ([("next", ["null", "R"]), ("name", "string")], b"\2" * 200, "do not match"),
    ],
)
def test_avro_that_exceeds_a_limit_is_not_valid(
    fields: list[tuple[str, object]], data: bytes, fault: str
) -> None:
    record = {
        "type": "record",
        "name": "R",
        "fields": [{"name": name, "type": kind} for name, kind in fields],
    }
    outer = {"type": "record", "name": "O", "fields": [{"name": "r", "type": record}]}
    cases: list[tuple[object, bytes]] = [(record, data), (outer, data), ({**record, "type": "error"}, data)]
    for schema, written in (*cases, (["null", record], b"\2" + data)):
        with pytest.raises(DeserializationError, match=fault):
            plain_serde("avro:r.avsc", json.dumps(schema)).deserialize(written)


@pytest.mark.parametrize(
    ("schema", "data", "value"),
    [
        (["null", "int"], b"\2\6", 3),
        ({"type": "array", "items": ["null", "int"]}, b"\2\2\6\0", [3]),
        (
            {"type": "map", "values": {"type": "enum", "name": "E", "symbols": ["A"]}},
            b"\2\2k\0\0",
            {"k": "A"},
        ),
        ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, b"\2", "B"),
        (
            [
                "null",
                {"type": "record", "name": "R", "fields": [{"name": "b", "type": "bytes", "default": "x"}]},
            ],
            b"\2\2y",
            {"b": b"y"},
        ),
        ("string", b"\2s", "s"),
    ],
)
def test_avro_that_is_no_record(schema: object, data: bytes, value: Value) -> None:
    serde = plain_serde("avro:r.avsc", json.dumps(schema))
    assert serde.deserialize(data) == value
    assert serde.serialize(value) == data
    for wrong in (data[:-1], data + b"\0", b"\1" + data[1:], b"\5" + data[1:]):
        with pytest.raises(DeserializationError):
            serde.deserialize(wrong)


@given(data=st.data())
def test_limits_accept_values_of_recursive_schemas(data: st.DataObject) -> None:
    fields: dict[str, tuple[object, st.SearchStrategy[Value]]] = {
        "b": ("boolean", st.booleans()),
        "d": ("double", st.floats(allow_nan=False)),
        "f": ({"type": "fixed", "name": "F", "size": 3}, st.binary(min_size=3, max_size=3)),
        "l": ("long", st.integers(-(2**63), 2**63 - 1)),
        "e": ({"type": "enum", "name": "E", "symbols": ["A", "B"]}, st.sampled_from("AB")),
        "n": ({"type": "array", "items": "null"}, st.lists(st.none(), max_size=3)),
        "s": ("string", st.text(st.characters(exclude_categories=["Cs"]), max_size=200)),
    }
    kinds: list[tuple[str, object]] = [(name, kind) for name, (kind, _) in fields.items()]
    kinds += [("a", {"type": "array", "items": "R"}), ("m", {"type": "map", "values": ["null", "R"]})]
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": kind} for name, kind in kinds]}
    plain = {name: values for name, (_, values) in fields.items()}
    leaves = st.fixed_dictionaries({**plain, "a": st.just([]), "m": st.just({})})
    trees = st.recursive(
        leaves,
        lambda inner: st.fixed_dictionaries(
            {
                **plain,
                "a": st.lists(inner, max_size=2),
                "m": st.dictionaries(st.text("ab", max_size=2), st.none() | inner, max_size=2),
            }
        ),
        max_leaves=4,
    )
    serde, value = plain_serde("avro:r.avsc", json.dumps(schema)), data.draw(trees)
    assert serde.deserialize(serde.serialize(value)) == value


def test_nested_values_that_can_be_read_can_be_compared_and_converted() -> None:
    lists = {"$ref": "#/$defs/n", "$defs": {"n": {"type": "array", "items": {"$ref": "#/$defs/n"}}}}
    deep = b"[" * 800 + b"]" * 800
    one, other = (plain_serde("json").deserialize(deep) for _ in range(2))
    assert plain_serde("json").equal(one, other)
    assert not plain_serde("json").equal(one, one[0])
    with pytest.raises(DeserializationError, match="nested too deeply"):
        plain_serde("json:n.json", json.dumps(lists)).deserialize(deep)
    link = {"name": "next", "type": ["null", "R"]}
    written = {"type": "record", "name": "R", "fields": [link]}
    added = {"name": "tags", "type": {"type": "array", "items": "int"}, "default": []}
    latest = json.dumps({"id": 8, "schema": json.dumps({**written, "fields": [link, added]})})
    serde = plain_serde("avro-registry:s", latest, {7: json.dumps(written)}.get)
    value = serde.deserialize(b"\0\0\0\0\7" + b"\2" * 299 + b"\0")
    assert value["next"]["tags"] == []


def test_schemas_without_an_end_are_rejected() -> None:
    endless = {"type": "record", "name": "R", "fields": [{"name": "r", "type": "R"}]}
    for text in (json.dumps(endless), '{"type":"array","items":' * 2_000 + '"int"' + "}" * 2_000):
        with pytest.raises(ValueError, match=r"has no end|nested too deeply"):
            plain_serde("avro:r.avsc", text)
    with pytest.raises(ValueError, match="nested too deeply"):
        plain_serde("json:n.json", '{"not":' * 2_000 + "{}" + "}" * 2_000)


@pytest.mark.parametrize("name", ["sting", "json:", "protobuf:x", "avro:missing.avsc"])
def test_unknown_formats(name: str) -> None:
    with pytest.raises(ValueError, match=r"format|schema") as fault:
        plain_serde(name)
    assert isinstance(fault.value, UnknownFormatError)


def test_invalid_schemas_are_rejected() -> None:
    for name, text in (("json:a", '{"type": 5}'), ("json:b", "{"), ("avro:c", '{"type": "rec"}')):
        with pytest.raises(ValueError, match=r"."):
            plain_serde(name, text)


def test_windowed_keys() -> None:
    time = serde_of(Format("string", "time", 10), {})
    assert time.serialize(Windowed("k", 256, 266)) == b"k" + bytes(6) + b"\x01\x00"
    assert time.deserialize(b"k" + bytes(8)) == Windowed("k", 0, 10)
    session = serde_of(Format("long", "session"), {})
    written = session.serialize(Windowed(1, 2, 3))
    assert written == bytes(7) + b"\x01" + bytes(7) + b"\x03" + bytes(7) + b"\x02"
    assert session.deserialize(written) == Windowed(1, 2, 3)
    endless = serde_of(Format("string", "time"), {})
    assert endless.deserialize(b"k" + bytes(8)).end == 2**63 - 1
    with pytest.raises(DeserializationError):
        time.deserialize(b"short")
    with pytest.raises(SerializationError):
        time.serialize("k")


texts = st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


@given(new=texts, old=texts)
def test_changes_are_read_as_written(new: str | None, old: str | None) -> None:
    serde = changed_serde(plain_serde("string"))
    if new is None and old is None:
        with pytest.raises(SerializationError):
            serde.serialize((new, old, True))
    else:
        assert serde.deserialize(serde.serialize((new, old, True))) == (new, old, True)


def test_bytes_of_changes() -> None:
    serde = changed_serde(plain_serde("string"))
    assert serde.serialize(("new", None, True)) == b"new\x01"
    assert serde.serialize((None, "old", True)) == b"old\x00"
    assert serde.serialize(("new", "old", True)) == b"\x06newold\x02"
    assert serde.serialize(("n" * 100, "o", True)) == b"\xc8\x01" + b"n" * 100 + b"o\x02"
    for data in (b"", b"x\x09", b"\x09ab\x02", b"\xff\xff\xff\xff\xff\xff\x02"):
        with pytest.raises(DeserializationError):
            serde.deserialize(data)


def test_foreign_key_messages() -> None:
    asks, answers = subscription_serde(plain_serde("string")), response_serde(plain_serde("string"))
    hashed = bytes(range(16))
    message = Subscription(hashed, 3, "pk1", 1)
    assert asks.serialize(message) == b"\x01\x03" + hashed + b"pk1\x00\x00\x00\x01"
    assert asks.deserialize(asks.serialize(message)) == message
    without = Subscription(None, 1, "pk1", 0)
    assert asks.serialize(without) == b"\x81\x01pk1\x00\x00\x00\x00"
    assert asks.deserialize(asks.serialize(without)) == without
    older = Subscription(hashed, 0, "pk1", None, 0)
    assert asks.deserialize(b"\x00\x00" + hashed + b"pk1") == older
    assert asks.serialize(older) == b"\x00\x00" + hashed + b"pk1"
    assert answers.serialize(Response(hashed, "v", 4)) == b"\x00" + hashed + b"v"
    assert answers.serialize(Response(None, None)) == b"\x80"
    assert answers.deserialize(b"\x00" + hashed) == Response(hashed, None)
    for serde, data in (
        (asks, b""),
        (asks, b"\x01\x03abc"),
        (asks, b"\x85\x01"),
        (answers, b"\x01" + hashed),
    ):
        with pytest.raises(DeserializationError):
            serde.deserialize(data)


@pytest.mark.parametrize(
    ("data", "hashed"),
    [  # of messages written by Kafka Streams
        (b"ann:3", "9bf70dcb9bb8db403dd33163800678f9"),
        (b"bob:4", "31df17e88b1a65f984b0b2c72d37e18a"),
        (b"cat:1", "ae7a07680d966d59bf08d74e84683f1f"),
    ],
)
def test_murmur3(data: bytes, hashed: str) -> None:
    assert murmur3_128(data).hex() == hashed


@given(st.binary(max_size=70))
def test_murmur3_is_a_function_of_all_bytes(data: bytes) -> None:
    assert len(murmur3_128(data)) == 16
    assert murmur3_128(data) != murmur3_128(data + b"\x01")


CARDS = json.dumps(
    {
        "type": "record",
        "name": "Hand",
        "fields": [
            {"name": "rate", "type": "double"},
            {"name": "cards", "type": {"type": "map", "values": "int"}},
        ],
    }
)
ID = "123e4567-e89b-12d3-a456-426614174000"


@pytest.mark.parametrize(
    ("name", "one", "other", "equal"),
    [
        ("string", "a", "a", True),
        ("string", "a", "b", False),
        ("long", 1, 1, True),
        ("double", 1, 1.0, True),
        ("double", 0.0, -0.0, False),
        ("double", math.nan, -math.nan, True),
        ("double", 0.1, 0.100000001, False),
        ("float", 0.1, 0.100000001, True),
        ("double", "a", "b", False),
        ("uuid", ID, ID.upper(), True),
        ("json", {"a": 1, "b": [None]}, {"b": [None], "a": 1}, True),
        ("json", {"a": 1}, {"a": 1, "b": 1}, False),
        ("json", {"a": 1}, {"b": 1}, False),
        ("json", [1, 2], [1], False),
        ("json", [1], [1.0], False),
        ("json", True, 1, False),
        ("json", 0.0, -0.0, False),
        (
            "avro:a.avsc",
            {"rate": 1, "cards": {"a": 1, "b": 2}},
            {"rate": 1.0, "cards": {"a": 1, "b": 2}},
            True,
        ),
        (
            "avro:a.avsc",
            {"rate": 1.0, "cards": {"a": 1, "b": 2}},
            {"rate": 1.0, "cards": {"b": 2, "a": 1}},
            True,
        ),
        ("avro:a.avsc", {"rate": 0.0, "cards": {}}, {"rate": -0.0, "cards": {}}, False),
    ],
)
def test_values_are_equal_as_in_java(name: str, one: Value, other: Value, equal: bool) -> None:  # noqa: FBT001
    schema = CARDS if name.startswith("avro:") else None
    serde = plain_serde(name, schema)
    assert serde.equal(one, other) is equal
    assert serde.equal(other, one) is equal


@pytest.mark.parametrize("window", ["time", "session"])
def test_windowed_keys_are_equal_if_key_and_window_are(window: Literal["time", "session"]) -> None:
    equal = serde_of(Format("json", window, 10), {}).equal
    assert equal(Windowed({"a": 1}, 0, 10), Windowed({"a": 1}, 0, 10))
    assert not equal(Windowed(1, 0, 10), Windowed(1.0, 0, 10))
    assert not equal(Windowed(1, 0, 10), Windowed(1, 10, 20))
    assert not equal(Windowed(1, 0, 10), 1)
