"""Every format: the bytes that it writes, that it reads them, and what it rejects."""

import json
import math
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.model.formats import Format
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


@pytest.mark.parametrize("name", ["sting", "json:", "protobuf:x", "avro:missing.avsc"])
def test_unknown_formats(name: str) -> None:
    with pytest.raises(ValueError, match=r"format|schema") as fault:
        plain_serde(name)
    assert isinstance(fault.value, UnknownFormatError)


@pytest.mark.parametrize("size", ["5m", "5m:string"])
def test_a_size_of_windows_that_is_no_number_is_reported_with_its_unit(size: str) -> None:
    with pytest.raises(UnknownFormatError, match=f"time-windowed:{size}; .* a number of milliseconds"):
        plain_serde(f"time-windowed:{size}")


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
