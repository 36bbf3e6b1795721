"""Avro with schemas of a registry: the header, other versions, and failures of the registry."""

import json
from collections.abc import Mapping
from typing import Literal

import pytest

from headwater_spark.engine.error_handlers import ErrorHandlers
from headwater_spark.engine.program_interface import EngineSettings
from headwater_spark.engine.serdes import (
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


def test_a_format_without_its_schema_is_unknown() -> None:
    with pytest.raises(UnknownFormatError):
        plain_serde(NAME)
    assert schema_key(NAME) == NAME
    assert schema_key("avro:orders-value") == "orders-value"


@pytest.mark.parametrize("handler", ["fail", "continue"])
def test_an_unavailable_registry_is_not_a_bad_record(handler: Literal["fail", "continue"]) -> None:
    error_handlers = ErrorHandlers(EngineSettings(on_bad_input=handler), lambda _: None)
    record = ("orders", 0, 5, 0, None, b"", ())
    with pytest.raises(RegistryUnavailableError):
        error_handlers.deserialization_failed(record, RegistryUnavailableError("no answer"))
    assert error_handlers.skipped == 0
