"""Avro: with a schema file (no header), or with a schema registry (header: 0, schema id in 4 bytes).

The header is that of Confluent's serializers. Logical types are read as their underlying types: a
`timestamp-millis` is a long, as everywhere in the runtime.
"""

import json
from collections.abc import Callable
from io import BytesIO

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.equality import equal_in_bytes, equal_in_java
from headwater_spark.engine.serdes.plain import DeserializationError, Plain, SerializationError


def avro(name: str, schema_text: str) -> Plain:
    """Return the serde of one schema.

    Raises:
        ValueError: The text is not an Avro schema.
    """
    try:
        schema = fastavro.parse_schema(_without_logical_types(json.loads(schema_text)))
    except (SchemaParseException, UnknownType, KeyError, TypeError) as error:
        raise ValueError(f"invalid Avro schema: {error}") from None

    def write(value: Value) -> bytes:
        out = BytesIO()
        try:
            fastavro.schemaless_writer(out, schema, value, strict_allow_default=True)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            raise SerializationError(name, "it does not match the schema") from None
        return out.getvalue()

    def read(data: bytes) -> Value:
        source = BytesIO(data)
        try:
            value = fastavro.schemaless_reader(source, schema, None)
        except (ValueError, EOFError, IndexError, KeyError, OverflowError, MemoryError):
            raise DeserializationError(name, f"{len(data)} byte(s) that do not match the schema") from None
        if source.tell() != len(data):
            raise DeserializationError(name, f"{len(data) - source.tell()} byte(s) too many")
        return value

    equal_bytes = equal_in_bytes(write)

    def equal(one: Value, other: Value) -> bool:
        """Compare maps without their order, and numbers with the types of the schema."""
        return equal_in_java(one, other) or equal_bytes(one, other)

    return Plain(write, read, equal)


def _without_logical_types(schema: Value) -> Value:
    if isinstance(schema, dict):
        return {key: _without_logical_types(each) for key, each in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    return schema


SchemaOf = Callable[[int], str | None]
"""Schema id → text of the schema; None = no such schema. Raises RegistryUnavailableError."""
_MAGIC = b"\0"
_HEADER = 5


class RegistryUnavailableError(Exception):
    """The schema registry does not answer. The record may be valid: retry the batch."""


def no_registry(schema_id: int) -> str | None:
    """Raise RegistryUnavailableError: no schema registry is configured (`SchemaOf`)."""
    raise RegistryUnavailableError(f"schema {schema_id} is required, but no schema registry is configured")


def registered_avro(name: str, latest: str, schema_of: SchemaOf) -> Plain:
    """Return a serde that reads with the schema that a value's id names, and writes with the latest one.

    `latest` is JSON with `id` and `schema`, a text: the latest version when the application started, the
    same for all tasks and attempts.

    Raises:
        ValueError: The schema is not an Avro schema.
    """
    registered = json.loads(latest)
    writer = avro(name, registered["schema"])
    header = _MAGIC + int(registered["id"]).to_bytes(4, "big")
    readers = {header: writer}

    def write(value: Value) -> bytes:
        return header + writer.serialize(value)

    def read(data: bytes) -> Value:
        reader = readers.get(data[:_HEADER])
        if reader is None:
            reader = readers[data[:_HEADER]] = _reader(name, data[:_HEADER], schema_of)
        return reader.deserialize(data[_HEADER:])

    return Plain(write, read, writer.equal)


def _reader(name: str, header: bytes, schema_of: SchemaOf) -> Plain:
    if len(header) < _HEADER or header[:1] != _MAGIC:
        raise DeserializationError(name, "it does not start with 0 and a schema id")
    schema_id = int.from_bytes(header[1:], "big")
    text = schema_of(schema_id)
    if text is None:
        raise DeserializationError(name, f"the registry has no schema {schema_id}")
    try:
        return avro(name, text)
    except ValueError as error:
        raise DeserializationError(name, f"schema {schema_id} cannot be used: {error}") from None
