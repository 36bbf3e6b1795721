"""Avro and JSON with schemas of a registry: the header, other versions, and failures of the registry."""

import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from headwater_spark.engine.error_handlers import ErrorHandlers
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.serdes import (
    CompilerUnavailableError,
    DeserializationError,
    RegistryUnavailableError,
    SerializationError,
    UnknownFormatError,
    UnreadFields,
    plain_serde,
    schema_key,
)

NAME = "avro-registry:orders-value"


def schema(*fields: Mapping[str, Any]) -> str:
    return json.dumps({"type": "record", "name": "Order", "fields": list(fields)})


ID = {"name": "id", "type": "long"}
NOTE = {"name": "note", "type": "string", "default": "none"}
VERSIONS = {7: schema(ID), 258: schema(ID, NOTE)}
LATEST = json.dumps({"id": 258, "schema": VERSIONS[258]})


def test_a_value_is_preceded_by_zero_and_its_schema_id() -> None:
    serde = plain_serde(NAME, LATEST, VERSIONS.get)
    written = serde.serialize({"id": 1, "note": "x"})
    assert written == b"\x00" + b"\x00\x00\x01\x02" + b"\x02\x02x"
    assert serde.deserialize(written) == {"id": 1, "note": "x"}


def test_the_schema_of_a_value_is_requested_once() -> None:
    asked = []

    def schema_of(schema_id: int) -> str | None:
        asked.append(schema_id)
        return VERSIONS.get(schema_id)

    serde = plain_serde(NAME, LATEST, schema_of)
    for number in range(3):
        assert serde.deserialize(b"\0\0\0\0\7" + bytes([2 * number])) == {"id": number, "note": "none"}
    assert asked == [7]


@pytest.mark.parametrize(
    "data",
    [b"", b"\0", b"\0\0\0\1", b"\1\0\0\1\2\2\2x", b"\0\0\0\0\1\2", b"\0\0\0\1\2", b"\0\0\0\1\2\2\2xy"],
    ids=["empty", "magic", "short", "other magic", "unknown schema", "no value", "too long"],
)
def test_expressions_that_spark_rejects(data: bytes) -> None:
    with pytest.raises(DeserializationError):
        plain_serde(NAME, LATEST, VERSIONS.get).deserialize(data)


def test_a_value_that_does_not_match_the_schema_is_rejected() -> None:
    with pytest.raises(SerializationError):
        plain_serde(NAME, LATEST, VERSIONS.get).serialize({"id": "text", "note": "x"})


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        ({"id": 1, "note": "x", "later": "secret"}, ", which has no field later"),
        ({"note": "x"}, ": id is missing"),
        ({"id": "text", "note": "x"}, ""),
    ],
)
def test_the_fault_names_fields_and_the_version_that_is_written(value: object, fault: str) -> None:
    with pytest.raises(SerializationError) as raised:
        plain_serde(NAME, LATEST, VERSIONS.get).serialize(value)
    version = "schema id 258, the latest version when the application started"
    assert str(raised.value) == (
        f"the value cannot be written as {NAME}: it does not match the schema{fault} ({version})"
    )


def _convert(written: str, known: str, value: Any) -> Any:  # noqa: ANN401 - any JSON
    """Write a value with a version that is newer than the application, and read it in the application."""
    newer = plain_serde(NAME, json.dumps({"id": 9, "schema": written}))
    serde = plain_serde(NAME, json.dumps({"id": 258, "schema": known}), {9: written}.get)
    read = serde.deserialize(newer.serialize(value))
    assert serde.deserialize(serde.serialize(read)) == read, "it can be passed on"
    return read


def field(name: str, type_: Any, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON
    return {"name": name, "type": type_, **more}


def enum(*symbols: str, **more: str) -> dict[str, Any]:
    return {"type": "enum", "name": "State", "symbols": list(symbols), **more}


_INNER = {"type": "record", "name": "Line", "fields": [ID]}
_INNER_NOTED = {"type": "record", "name": "Line", "fields": [ID, NOTE]}


@pytest.mark.parametrize(
    ("written", "known", "value", "expected"),
    [
        (schema(ID, NOTE), schema(ID), {"id": 1, "note": "x"}, {"id": 1}),
        (schema(NOTE, ID), schema(ID), {"id": 1, "note": "x"}, {"id": 1}),
        (schema(ID), schema(ID, NOTE), {"id": 1}, {"id": 1, "note": "none"}),
        (schema(field("id", "int")), schema(field("id", "double")), {"id": 1}, {"id": 1.0}),
        (schema(field("id", "long")), schema(field("id", ["null", "long"])), {"id": 1}, {"id": 1}),
        (
            schema(field("id", ["null", "string", "long"])),
            schema(field("id", ["null", "long"])),
            {"id": None},
            {"id": None},
        ),
        (schema(field("s", enum("A", "B"))), schema(field("s", enum("B"))), {"s": "B"}, {"s": "B"}),
        (
            schema(field("s", enum("A", "B"))),
            schema(field("s", enum("A", default="A"))),
            {"s": "B"},
            {"s": "A"},
        ),
        (
            schema(field("old", "string")),
            schema(field("new", "string", aliases=["old"])),
            {"old": "x"},
            {"new": "x"},
        ),
        (
            schema(field("lines", {"type": "array", "items": _INNER_NOTED})),
            schema(field("lines", {"type": "array", "items": _INNER})),
            {"lines": [{"id": 1, "note": "x"}]},
            {"lines": [{"id": 1}]},
        ),
    ],
    ids=[
        *("added", "added first", "removed", "promoted", "union added", "union reduced", "enum reduced"),
        *("enum default", "alias", "nested"),
    ],
)
def test_a_value_of_another_version_is_converted_to_the_version_at_the_start(
    written: str, known: str, value: object, expected: object
) -> None:
    """Follows Avro's schema resolution, as a Kafka Streams application with `SpecificAvroSerde` does."""
    assert repr(_convert(written, known, value)) == repr(expected)


@pytest.mark.parametrize(
    ("written", "known", "value", "fault"),
    [
        (schema(ID), schema(ID, field("total", "long")), {"id": 1}, ": total is missing, and has no default"),
        (schema(field("id", "string")), schema(ID), {"id": "secret"}, ": a type, a union or an enum differs"),
        (
            schema(field("s", enum("A", "SECRET"))),
            schema(field("s", enum("A"))),
            {"s": "SECRET"},
            ": a type, a union or an enum differs",
        ),
        (schema(field("id", ["null", "long"])), schema(ID), {"id": None}, ": a type, a union or an enum"),
    ],
    ids=["no default", "type", "enum", "null"],
)
def test_a_value_of_an_incompatible_version_cannot_be_read(
    written: str, known: str, value: object, fault: str
) -> None:
    with pytest.raises(DeserializationError, match=f"it cannot be converted{fault}") as raised:
        _convert(written, known, value)
    assert "secret" not in str(raised.value).lower()


def test_a_record_with_another_name_is_read_as_it_is() -> None:
    """A topic may have records of several types; Kafka's deserializer finds the class by the name."""
    other = json.dumps({"type": "record", "name": "Refund", "fields": [{"name": "sum", "type": "long"}]})
    written = plain_serde(NAME, json.dumps({"id": 9, "schema": other})).serialize({"sum": 5})
    assert plain_serde(NAME, LATEST, {9: other}.get).deserialize(written) == {"sum": 5}


@pytest.mark.parametrize(
    ("type_", "default", "value"),
    [
        ("bytes", "\u00ff", b"\xff"),
        ({"type": "fixed", "name": "F", "size": 2}, "ab", b"ab"),
        ("double", 0, 0.0),
        (["bytes", "null"], "a", b"a"),
        (["null", "double"], 7, 7.0),
        ({"type": "array", "items": "float"}, [1], [1.0]),
        ({"type": "map", "values": "bytes"}, {"a": "b"}, {"a": b"b"}),
        (
            {"type": "record", "name": "N", "fields": [field("x", "bytes", default="b"), field("y", "long")]},
            {"y": 1},
            {"x": b"b", "y": 1},
        ),
    ],
    ids=["bytes", "fixed", "double", "union", "second of a union", "array", "map", "record"],
)
def test_defaults_are_values_of_their_type(type_: object, default: object, value: object) -> None:
    """A schema has defaults as JSON: bytes are a string, and a double may be a whole number."""
    known = schema(ID, field("added", type_, default=default))
    expected = {"id": 1, "added": value}
    assert repr(_convert(schema(ID), known, {"id": 1})) == repr(expected)
    serde = plain_serde("avro:orders.avsc", known)
    assert repr(serde.deserialize(serde.serialize({"id": 1}))) == repr(expected)


def test_a_default_is_another_object_for_each_value() -> None:
    """A processor may change what it gets."""
    known = schema(ID, field("tags", {"type": "array", "items": "string"}, default=[]))
    serde = plain_serde(NAME, json.dumps({"id": 258, "schema": known}), VERSIONS.get)
    for _ in range(2):
        value = serde.deserialize(b"\0\0\0\0\7\2")
        assert value == {"id": 1, "tags": []}
        value["tags"].append("changed")


_LINE_OF_THE_SHOP = {"type": "record", "name": "Line", "namespace": "shop", "fields": [ID]}
_NEWER_LINE = {**_LINE_OF_THE_SHOP, "fields": [ID, NOTE]}


@pytest.mark.parametrize(
    ("written", "known", "names"),
    [
        (schema(ID, NOTE), schema(ID), ("Order.note",)),
        (schema(ID), schema(ID, NOTE), ()),
        (schema(field("old", "long")), schema(field("new", "long", aliases=["old"])), ()),
        (
            schema(ID, field("lines", {"type": "array", "items": _NEWER_LINE}), NOTE),
            schema(ID, field("lines", {"type": "array", "items": _LINE_OF_THE_SHOP})),
            ("Order.note", "shop.Line.note"),
        ),
        (schema(ID, NOTE).replace("Order", "Refund"), schema(ID), ()),
    ],
    ids=["added", "not added yet", "alias", "nested", "another record"],
)
def test_fields_that_are_not_read_are_reported_once(written: str, known: str, names: tuple[str, ...]) -> None:
    reports: list[UnreadFields] = []
    latest = json.dumps({"id": 258, "schema": known})
    serde = plain_serde(NAME, latest, {9: written}.get, reports.append)
    value = {"id": 1, "old": 1, "note": "x", "lines": []}
    fields = [each["name"] for each in json.loads(written)["fields"]]
    newer = plain_serde(NAME, json.dumps({"id": 9, "schema": written}))
    for _ in range(2):
        serde.deserialize(newer.serialize({name: value[name] for name in fields}))
    assert reports == ([UnreadFields(NAME, 9, 258, names)] if names else [])


def test_a_lack_of_memory_is_no_bad_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("fastavro.schemaless_reader", fail)
    with pytest.raises(MemoryError):
        plain_serde("avro:a.avsc", schema(ID)).deserialize(b"\2")


def test_a_recursive_record_is_converted() -> None:
    def node(*more: Mapping[str, Any]) -> str:
        return schema(ID, field("next", ["null", "Order"]), *more)

    value = {"id": 1, "next": {"id": 2, "next": None}}
    expected = {"id": 1, "next": {"id": 2, "next": None, "note": "none"}, "note": "none"}
    assert _convert(node(), node(NOTE), value) == expected
    assert _convert(node(NOTE), node(), expected) == value


def test_a_format_without_its_schema_is_unknown() -> None:
    with pytest.raises(UnknownFormatError):
        plain_serde(NAME)
    assert schema_key(NAME) == NAME
    assert schema_key("avro:orders-value") == "orders-value"


def test_json_is_validated_with_the_schema_of_its_id() -> None:
    """The bytes are as Confluent's KafkaJsonSchemaSerializer writes them."""
    versions = {
        1: json.dumps({"type": "object", "required": ["item"]}),
        2: json.dumps({"type": "object", "required": ["item"], "properties": {"count": {"type": "integer"}}}),
    }
    latest = json.dumps({"id": 2, "schema": versions[2]})
    serde = plain_serde("json-registry:orders-value", latest, versions.get)
    written = serde.serialize({"item": "tea", "count": 2})
    assert written == b'\0\0\0\0\2{"item":"tea","count":2}'
    assert serde.deserialize(written) == {"item": "tea", "count": 2}
    assert serde.deserialize(b'\0\0\0\0\1{"item":"tea","count":"two"}') == {"item": "tea", "count": "two"}
    with pytest.raises(SerializationError, match="properties/count/type"):
        serde.serialize({"item": "tea", "count": "two"})
    for refused in (b'\0\0\0\0\2{"count":2}', b'{"item":"tea"}', b"\0\0\0\0\2", b'\0\0\0\0\3{"item":"tea"}'):
        with pytest.raises(DeserializationError):
            serde.deserialize(refused)


def _closed(*names: str) -> str:
    return json.dumps({"properties": {name: {} for name in names}, "additionalProperties": False})


def test_json_of_a_newer_version_is_passed_on_with_its_version() -> None:
    """An application with `KafkaJsonSchemaSerde<JsonNode>` continues, too, with the new field."""
    versions = {2: _closed("item", "old"), 7: _closed("item"), 9: _closed("item", "note")}
    latest = json.dumps({"id": 7, "schema": versions[7]})
    serde = plain_serde("json-registry:orders-value", latest, versions.get)
    value = {"item": "tea", "note": "x"}
    with pytest.raises(SerializationError, match="additionalProperties"):
        serde.serialize(value)
    written = b'\0\0\0\0\x09{"item":"tea","note":"x"}'
    assert serde.deserialize(written) == value
    assert serde.serialize(value) == written
    assert serde.serialize({"item": "tea"})[:5] == b"\0\0\0\0\7", "what fits is written as before"
    older = serde.deserialize(b'\0\0\0\0\2{"item":"tea","old":1}')
    with pytest.raises(SerializationError, match="schema id 7, the latest version when"):
        serde.serialize(older)


@pytest.mark.parametrize(
    ("name", "latest", "other"),
    [
        (NAME, LATEST, "{}"),
        ("json-registry:a", json.dumps({"id": 1, "schema": "{}"}), '{"type": "record"}'),
    ],
)
def test_a_schema_of_another_type_does_not_fit(name: str, latest: str, other: str) -> None:
    serde = plain_serde(name, latest, {7: other}.get)
    with pytest.raises(DeserializationError, match="schema 7 cannot be used"):
        serde.deserialize(b"\0\0\0\0\7{}")


def test_a_schema_that_the_registry_client_refuses_is_a_bad_record() -> None:
    def schema_of(_: int) -> str | None:
        raise ValueError("the schema is PROTOBUF, not AVRO or JSON")

    with pytest.raises(DeserializationError, match="schema 7 cannot be used: the schema is PROTOBUF"):
        plain_serde(NAME, LATEST, schema_of).deserialize(b"\0\0\0\0\7\2")


@pytest.mark.parametrize("handler", ["fail", "continue"])
@pytest.mark.parametrize("error", [RegistryUnavailableError, CompilerUnavailableError])
def test_an_unavailable_registry_is_not_a_bad_record(
    handler: Literal["fail", "continue"], error: type[Exception]
) -> None:
    settings = EngineSettings(on_bad_input=handler, on_processing_error=handler)
    error_handlers = ErrorHandlers(settings, lambda _: None)
    record = ("orders", 0, 5, 0, None, b"", ())
    with pytest.raises(error):
        error_handlers.deserialization_failed(record, error("no answer"))
    with pytest.raises(error):
        error_handlers.punctuation_failed("0_0", error("no answer"))
    assert error_handlers.skipped == 0


@pytest.mark.parametrize("error", [RegistryUnavailableError, CompilerUnavailableError])
def test_an_unavailable_schema_is_requested_again(error: type[Exception]) -> None:
    answers = [error("no answer"), None]

    def schema_of(schema_id: int) -> str | None:
        if (failure := answers.pop(0)) is not None:
            raise failure
        return VERSIONS[schema_id]

    serde = plain_serde(NAME, LATEST, schema_of)
    with pytest.raises(error):
        serde.deserialize(b"\0\0\0\0\7\2")
    assert serde.deserialize(b"\0\0\0\0\7\2") == {"id": 1, "note": "none"}
