"""Avro and JSON with schemas of a registry: the header, other versions, and failures of the registry."""

import json
from collections.abc import Mapping
from typing import Literal

import pytest

from headwater_spark.engine.error_handlers import ErrorHandlers
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.serdes import (
    CompilerUnavailableError,
    DeserializationError,
    RegistryUnavailableError,
    SerializationError,
    UnknownFormatError,
    plain_serde,
    schema_key,
)

NAME = "avro-registry:orders-value"


def schema(*fields: Mapping[str, str]) -> str:
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


def test_a_value_is_read_by_the_schema_it_was_written_with() -> None:
    asked = []

    def schema_of(schema_id: int) -> str | None:
        asked.append(schema_id)
        return VERSIONS.get(schema_id)

    serde = plain_serde(NAME, LATEST, schema_of)
    for number in range(3):
        assert serde.deserialize(b"\0\0\0\0\7" + bytes([2 * number])) == {"id": number}
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
    """Producers may write a later version while the application runs, and it passes their values on."""
    with pytest.raises(SerializationError) as raised:
        plain_serde(NAME, LATEST, VERSIONS.get).serialize(value)
    version = "schema id 258, the latest version when the application started"
    assert str(raised.value) == (
        f"the value cannot be written as {NAME}: it does not match the schema{fault} ({version})"
    )


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
    assert serde.deserialize(b"\0\0\0\0\7\2") == {"id": 1}
