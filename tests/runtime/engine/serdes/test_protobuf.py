"""Protobuf with and without a schema registry: the bytes, the values, other versions and bad input."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

from headwater_spark.engine.serdes import (
    CompilerUnavailableError,
    DeserializationError,
    Plain,
    SerializationError,
    UnreadFields,
    plain_serde,
    schema_key,
    schema_subject,
    schema_type,
)
from headwater_spark.engine.serdes.protobuf import read_path, write_path
from headwater_spark.worker import protobuf_schemas
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
WITH_MAP = """
syntax = "proto3";
package shop;
message Order {
  map<string, Line> tags = 1;
  message Line { string sku = 1; message Part { int32 x = 1; } map<int32, int32> m = 2; message Last {} }
  map<string, int32> counts = 2;
}
"""
WITH_ENTRIES = """
syntax = "proto3";
package shop;
message Order {
  repeated TagsEntry tags = 1;
  repeated .shop.Order.CountsEntry counts = 2;
  message TagsEntry { option map_entry = true; string key = 1; .shop.Order.Line value = 2; }
  message Line { string sku = 1; }
  message CountsEntry {
    /* option map_entry = true; */ option  map_entry=true; // option map_entry = true;
    string key = 1;
    int32 value = 2;
  }
  message Last { string text = 1; map<string, string> more = 2; message Inner {} reserved 7; }
}
"""
"""A map as Confluent's serializers register it if they do not normalize schemas."""
OLDER = 'syntax = "proto3"; package shop; message Order { string item = 1; }'
NEWER = """
syntax = "proto3";
package shop;
message Refund { string reason = 1; }
message Order { string item = 1; int64 count = 2; }
"""
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


@pytest.mark.parametrize(
    ("proto", "message", "path"),
    [
        (WITH_MAP, "Order.Line", [0, 0]),
        (WITH_MAP, "Order.Line.Part", [0, 0, 0]),
        (WITH_MAP, "Order.Line.Last", [0, 0, 1]),
        (WITH_ENTRIES, "Order.Line", [0, 1]),
        (WITH_ENTRIES, "Order.Last", [0, 3]),
        (WITH_ENTRIES, "Order.Last.Inner", [0, 3, 0]),
    ],
)
def test_indexes_count_the_messages_in_the_text(proto: str, message: str, path: list[int]) -> None:
    """As `ProtobufSchema#toMessageIndexes`: the entry of a map counts if the text has it as a message."""
    own = serde(f"{NAME}#{message}", proto)
    assert own.serialize({}) == HEADER + write_path(path)
    assert serde(NAME, proto).deserialize(own.serialize({})) == own.deserialize(own.serialize({}))


def test_entries_of_maps_are_no_messages() -> None:
    for proto, path in (
        (WITH_MAP, [0, 1]),
        (WITH_MAP, [0, 2]),
        (WITH_ENTRIES, [0, 0]),
        (WITH_ENTRIES, [0, 2]),
    ):
        with pytest.raises(DeserializationError, match="no message at its indexes"):
            serde(NAME, proto).deserialize(HEADER + write_path(path))
        for name in ("Order.TagsEntry", "shop.Order.CountsEntry"):
            with pytest.raises(ValueError, match=f"has no message {name}"):
                serde(f"{NAME}#{name}", proto)


def test_entries_that_the_text_has_are_maps() -> None:
    value = {"tags": {"a": {"sku": "b"}}, "counts": {"x": 1, "y": 2}}
    one, other = (serde(NAME, proto) for proto in (WITH_ENTRIES, WITH_MAP))
    written = one.serialize(value)
    assert written == other.serialize(value)
    assert one.deserialize(written) == value
    for wrong in ("string key = 1;", "string key = 1; int32 other = 2;", "bytes key = 1; int32 value = 2;"):
        proto = 'syntax = "proto3"; message A { repeated E e = 1; message E { option map_entry = true; %s } }'
        with pytest.raises(ValueError, match=r"is not an entry of a map|not a Protobuf schema"):
            serde(NAME, proto % wrong)


def test_fields_may_be_named_like_methods() -> None:
    names = ("DESCRIPTOR", "HasField", "IsInitialized", "SetInParent", "SerializeToString", "FromString")
    fields = "".join(f"optional int32 {name} = {number};" for number, name in enumerate(names, 1))
    inner = (
        "message B { A DESCRIPTOR = 1; A SetInParent = 2; repeated A HasField = 3; map<string, A> add = 4; }"
    )
    own = serde(proto=f'syntax = "proto3"; message A {{ {fields} B B = 9; }} {inner}')
    value = dict(zip(names, range(len(names)), strict=True)) | {"B": None}
    assert own.deserialize(own.serialize(value)) == value
    nested = {"DESCRIPTOR": value, "SetInParent": value, "HasField": [value], "add": {"k": value}}
    assert own.deserialize(own.serialize({"B": nested}))["B"] == nested


def test_the_path_of_the_first_message_may_be_written_in_full() -> None:
    assert read_path(b"\x02\0x") == ([0], 2)
    assert write_path([300]) == b"\x02\xd8\x04"
    assert read_path(b"\x02\xd8\x04") == ([300], 3)


def test_a_value_of_another_version_is_read_as_a_message_of_the_version_at_the_start() -> None:
    """As with `KafkaProtobufSerde` of a class: the class reads the bytes of all versions."""
    own = serde(others={7: OLDER})
    older = own.deserialize(b"\0\0\0\0\7\0\x0a\x03tea")
    assert older == {**EMPTY, "item": "tea"}
    newer = serde(proto=OLDER, others={7: NEWER})
    read = newer.deserialize(b"\0\0\0\0\7\2\2\x0a\x03tea\x10\x05")
    assert read == {"item": "tea"}
    assert newer.serialize(read) == HEADER + b"\0\x0a\x03tea", "it can be passed on"


def test_fields_that_are_not_read_are_reported_once() -> None:
    reports: list[UnreadFields] = []
    latest = json.dumps({"id": 258, "schema": compile_schema(OLDER)})
    own = plain_serde(NAME, latest, {7: compile_schema(NEWER)}.get, reports.append)
    for path in (b"\2\2", b"\0", b"\2\2"):
        own.deserialize(b"\0\0\0\0\7" + path + b"\x0a\x03tea")
    assert reports == [UnreadFields(NAME, 7, 258, ("shop.Order.count",))]


def test_a_message_that_the_version_at_the_start_does_not_have_is_read_as_it_is() -> None:
    own = serde(proto=OLDER, others={7: NEWER})
    assert own.deserialize(b"\0\0\0\0\7\0\x0a\1x") == {"reason": "x"}


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
        {"count": 10**400},
        {"price": 10**400},
        {"card": "a", "cash": b"b"},
        {"tags": {"01": "a"}},
        {"tags": {"+1": "a"}},
        {"tags": {" 1": "a"}},
        {"tags": {"1_0": "a"}},
        {"tags": {"-0": "a"}},
        {"tags": {"\u0661": "a"}},
        {"tags": {str(2**31): "a"}},
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


def test_a_finite_number_stays_finite() -> None:
    own = serde(
        proto='syntax = "proto3"; message A { float f = 1; repeated float g = 2; map<string, float> h = 3; }'
    )
    for fits in (3.4028235e38, -3.4028235e38, 2**100, 1e-60, float("inf")):
        assert own.deserialize(own.serialize({"f": fits}))["f"] == pytest.approx(fits)
    for large in (3.40282357e38, -1e39, 2**128, 10**400):
        for value in ({"f": large}, {"g": [large]}, {"h": {"k": large}}):
            with pytest.raises(SerializationError, match="out of range"):
                own.serialize(value)


def test_one_field_of_a_oneof_is_set() -> None:
    own = serde()
    with pytest.raises(SerializationError, match=r"more than one field of shop\.Order\.payment"):
        own.serialize({"card": "", "cash": b""})
    assert own.deserialize(own.serialize({"card": None, "cash": b"x", "note": "y"}))["cash"] == b"x"


def test_a_compiler_that_is_missing_or_slow_is_no_fault_of_the_schema(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    proto = 'syntax = "proto3"; message NotCompiledYet {}'
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "grpc_tools", None)
        with pytest.raises(CompilerUnavailableError, match=r"headwater\[protobuf\]"):
            compile_schema(proto)
    with monkeypatch.context() as patch:
        patch.setattr(protobuf_schemas, "_COMPILER_SECONDS", 0)
        with pytest.raises(CompilerUnavailableError, match="did not finish in 0 s"):
            compile_schema(proto)
    with monkeypatch.context() as patch:
        patch.setattr(protobuf_schemas, "_MODULE", "json")
        with pytest.raises(CompilerUnavailableError, match=r"protoc failed: .*No module named"):
            compile_schema(proto)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(CompilerUnavailableError, match="protoc cannot run: No such file"):
            compile_schema(proto)
    assert compile_schema(proto)


@pytest.mark.parametrize("code", [1, -9])
def test_a_warning_is_no_fault_of_the_schema(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """Protoc warns of an unused import, then the disk is full, or the process is killed."""
    lines = "schema.proto:1:18: warning: Import date.proto is unused.\nschema.bin: No space left on device\n"
    done = subprocess.CompletedProcess((), code, "", lines)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: done)
    with pytest.raises(CompilerUnavailableError, match="No space left on device"):
        compile_schema(f'syntax = "proto3"; message Warned{abs(code)} {{}}')
    fault = "schema.proto:2:1: Expected top-level statement.\n"
    monkeypatch.setattr(
        subprocess, "run", lambda *_, **__: subprocess.CompletedProcess((), 1, "", lines + fault)
    )
    with pytest.raises(ValueError, match="2:1: Expected top-level statement"):
        compile_schema(f'syntax = "proto3"; message Warned{abs(code)} {{}}')


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
    assert schema_subject(f"{NAME}#shop.Line") == "orders-value"
    assert schema_subject("avro-registry:a#b") == "a#b"
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
