"""Values of Avro, and the limits of nested values and of items without bytes."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes import DeserializationError, SerializationError, plain_serde

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


def test_nested_values_of_another_schema_version_can_be_converted() -> None:
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
