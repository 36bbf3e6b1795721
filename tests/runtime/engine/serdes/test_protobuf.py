"""Protobuf with and without a schema registry: the bytes, the values, other versions and bad input."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from headwater_spark.engine.serdes import (
    DeserializationError,
    Plain,
    SerializationError,
    plain_serde,
    schema_key,
    schema_type,
    subject,
)
from headwater_spark.engine.serdes.protobuf import read_path, write_path
from headwater_spark.worker.protobuf_schemas import compile_schema

NAME = "protobuf-registry:orders-value"
HEADER = b"\0\0\0\1\2"
PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
message Order {
  string item = 1;
  int64 count = 2;
  optional string note = 3;
  repeated Line lines = 4;
  map<int32, string> tags = 5;
  enum State { NEW = 0; DONE = 1; }
  State state = 6;
  oneof payment { string card = 7; bytes cash = 8; }
  google.protobuf.Timestamp at = 9;
  double price = 10;
  bool paid = 11;
  map<string, Line> by_sku = 12;
  Order parent = 13;
  repeated sint32 numbers = 14;
}
message Line { string sku = 1; uint64 amount = 2; }
message Outer { message First { int32 x = 1; } message Second { message Deep { int32 y = 1; } } }
"""
OLDER = 'syntax = "proto3"; package shop; message Order { string item = 1; }'
REQUIRED = 'syntax = "proto2"; message A { required int32 x = 1; optional int32 y = 2 [default = 7]; }'
EMPTY: Mapping[str, Any] = {
    "item": "", "count": 0, "note": None, "lines": [], "tags": {}, "state": "NEW", "card": None,
    "cash": None, "at": None, "price": 0.0, "paid": False, "by_sku": {}, "parent": None, "numbers": [],
}  # fmt: skip


def serde(name: str = NAME, proto: str = PROTO, others: Mapping[int, str] | None = None) -> Plain:
    compiled = {id_: compile_schema(text) for id_, text in (others or {}).items()}
    latest = json.dumps({"id": 258, "schema": compile_schema(proto)})
    return plain_serde(name, latest, compiled.get)


@pytest.mark.parametrize(
    ("value", "data"),
    [
        ({}, b""),
        ({"item": "tea", "note": None}, b"\x0a\x03tea"),
        ({"count": -1}, b"\x10" + b"\xff" * 9 + b"\x01"),
        ({"note": ""}, b"\x1a\0"),
        ({"lines": [{"sku": "a"}, {}]}, b"\x22\x03\x0a\x01a\x22\0"),
        ({"tags": {"1": "a"}}, b"\x2a\x05\x08\x01\x12\x01a"),
        ({"state": "DONE"}, b"\x30\x01"),
        ({"state": 9}, b"\x30\x09"),
        ({"cash": b"\xff"}, b"\x42\x01\xff"),
        ({"at": {"seconds": 1, "nanos": 2}}, b"\x4a\x04\x08\x01\x10\x02"),
        ({"price": 1.0, "paid": True}, b"\x51\0\0\0\0\0\0\xf0\x3f\x58\x01"),
        ({"by_sku": {"k": {"amount": 2**64 - 1}}}, b"\x62\x10\x0a\x01k\x12\x0b\x10" + b"\xff" * 9 + b"\x01"),
        ({"parent": {}}, b"\x6a\0"),
        ({"numbers": [1, -1]}, b"\x72\x02\x02\x01"),
    ],
)
def test_values_have_the_bytes_of_protobuf(value: Mapping[str, Any], data: bytes) -> None:
    own = serde()
    assert own.serialize(value) == HEADER + b"\0" + data
    read = own.deserialize(HEADER + b"\0" + data)
    assert own.equal(read, value)
    assert own.serialize(read) == HEADER + b"\0" + data
    assert list(read) == list(EMPTY)
    assert plain_serde("protobuf:orders.proto", compile_schema(PROTO)).serialize(value) == data


def test_fields_that_are_not_set_have_their_defaults() -> None:
    assert serde().deserialize(HEADER + b"\0") == EMPTY
    own = plain_serde("protobuf:a.proto", compile_schema(REQUIRED))
    assert own.deserialize(b"\x08\x01") == {"x": 1, "y": None}


@pytest.mark.parametrize(
    ("message", "path", "data"),
    [
        ("", [0], b"\0"),
        ("#Line", [1], b"\x02\x02"),
        ("#shop.Outer", [2], b"\x02\x04"),
        ("#Outer.First", [2, 0], b"\x04\x04\0"),
        ("#shop.Outer.Second.Deep", [2, 1, 0], b"\x06\x04\x02\0"),
    ],
)
def test_a_message_is_named_by_its_indexes(message: str, path: list[int], data: bytes) -> None:
    """The bytes are those that Confluent's serializers write (`MessageIndexes#toByteArray`)."""
    assert write_path(path) == data
    assert read_path(data + b"rest") == (path, len(data))
    own = serde(NAME + message)
    assert own.serialize({}) == HEADER + data
    # Each message of the schema is read, whichever the format names.
    assert serde().deserialize(own.serialize({})) == own.deserialize(own.serialize({}))


def test_the_path_of_the_first_message_may_be_written_in_full() -> None:
    assert read_path(b"\x02\0x") == ([0], 2)
    assert write_path([300]) == b"\x02\xd8\x04"
    assert read_path(b"\x02\xd8\x04") == ([300], 3)


def test_a_value_is_read_with_the_schema_that_it_was_written_with() -> None:
    own = serde(others={7: OLDER})
    assert own.deserialize(b"\0\0\0\0\7\0\x0a\x03tea") == {"item": "tea"}
    newer = serde(proto=OLDER)
    assert newer.deserialize(HEADER + b"\0\x0a\x03tea\x10\x05") == {"item": "tea"}


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0\0\0\1",
        b"\1\0\0\1\2\0",
        b"\0\0\0\0\x09\0",
        HEADER,
        HEADER + b"\x02",
        HEADER + b"\x02\x10",
        HEADER + b"\x02\x01",
        HEADER + b"\x01",
        HEADER + b"\x06\0\0\0",
        HEADER + b"\xff" * 8,
        HEADER + b"\0\x0a\x05tea",
        HEADER + b"\0\xff",
        HEADER + b"\0\x0a\x01\xff",
        HEADER + b"\0" + b"\x6a\x7f" * 200,
    ],
    ids=[
        *("empty", "no id", "other magic", "unknown schema", "no path", "short path", "no such message"),
        *("negative index", "negative count", "no such inner message", "endless number"),
        *("too short", "no tag", "not UTF-8", "nested too deeply"),
    ],
)
def test_bad_input_is_refused(data: bytes) -> None:
    with pytest.raises(DeserializationError):
        serde().deserialize(data)


def test_a_required_field_is_required() -> None:
    own = plain_serde("protobuf:a.proto", compile_schema(REQUIRED))
    with pytest.raises(DeserializationError, match="a required field is missing"):
        own.deserialize(b"")
    with pytest.raises(SerializationError):
        own.serialize({"y": 1})


@pytest.mark.parametrize(
    "value",
    [
        "text",
        {"unknown": 1},
        {"item": 1},
        {"count": True},
        {"count": 1.5},
        {"count": 2**63},
        {"paid": 1},
        {"price": "1"},
        {"state": "OLD"},
        {"state": 2**40},
        {"cash": "text"},
        {"lines": {}},
        {"lines": [1]},
        {"lines": [None]},
        {"numbers": 1},
        {"numbers": [None]},
        {"numbers": [2**31]},
        {"tags": []},
        {"tags": {"x": "a"}},
        {"tags": {"1": None}},
        {"by_sku": {"k": 1}},
        {"parent": []},
        {"item": "\ud800"},
    ],
)
def test_values_that_do_not_match_the_schema_are_refused(value: Any) -> None:  # noqa: ANN401 - any value
    with pytest.raises(SerializationError):
        serde().serialize(value)


def test_numbers_may_be_whole_and_keys_boolean() -> None:
    own = serde(proto='syntax = "proto3"; message A { map<bool, double> m = 1; }')
    assert own.deserialize(own.serialize({"m": {"true": 1, "false": 2.5}})) == {
        "m": {"true": 1.0, "false": 2.5}
    }
    with pytest.raises(SerializationError):
        own.serialize({"m": {"1": 1.0}})


@pytest.mark.parametrize(
    ("proto", "fault"),
    [
        ("message", "1:8: Expected message name"),
        ('syntax = "proto3"; import "/etc/passwd"; message A {}', 'Import "/etc/passwd" was not found'),
        ('syntax = "proto3"; import "../a.proto"; message A {}', "invalid Protobuf schema"),
        ('syntax = "proto3";' + "message A {" * 5_000 + "}" * 5_000, "recursion limit"),
        ("\ud800", "protoc cannot compile it"),
    ],
    ids=["no name", "a file", "a file above", "nested too deeply", "not Unicode"],
)
def test_schemas_that_cannot_be_compiled_are_refused(proto: str, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        compile_schema(proto)


def test_formats_name_subjects_files_and_messages() -> None:
    assert subject(f"{NAME}#shop.Line") == "orders-value"
    assert subject("avro-registry:a#b") == "a#b"
    assert schema_key(f"{NAME}#Line") == f"{NAME}#Line"
    assert schema_key("protobuf:orders.proto#Line") == "orders.proto"
    assert schema_type(NAME) == "PROTOBUF"
    for schema, fault in (
        (compile_schema('syntax = "proto3";'), "has no message"),
        ("{}", "not a Protobuf schema"),
        ("AAAA", "not a Protobuf schema"),
        (compile_schema(PROTO), "has no message Unknown"),
    ):
        with pytest.raises(ValueError, match=fault):
            plain_serde("protobuf:orders.proto#Unknown", schema)


def test_the_order_of_a_map_does_not_matter() -> None:
    own = serde()
    one, other = ({"tags": tags} for tags in ({"1": "a", "2": "b"}, {"2": "b", "1": "a"}))
    assert own.serialize(one) == own.serialize(other)
    assert own.equal({"tags": {"1": "a", "2": "b"}}, {"tags": {"2": "b", "1": "a"}, "note": None})
    assert not own.equal({"tags": {"1": "a"}}, {"tags": {"1": "b"}})
    assert not own.equal({"count": 1}, {"count": "1"})
