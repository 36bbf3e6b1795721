"""Avro by a schema file, without any header; no schema registry is asked.

Logical types are read as the types below them: a `timestamp-millis` is a long, as everywhere in the runtime.
"""

import json
from io import BytesIO

import fastavro
from fastavro.schema import SchemaParseException, UnknownType

from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.serdes.errors import DeserializationError, SerializationError
from spark_jobs.runtime.engine.serdes.plain import Plain


def avro(name: str, schema_text: str) -> Plain:
    """Avro of one schema.

    Raises:
        ValueError: The text is no Avro schema.
    """
    try:
        schema = fastavro.parse_schema(_without_logical_types(json.loads(schema_text)))
    except (SchemaParseException, UnknownType, KeyError, TypeError) as error:
        raise ValueError(f"no valid Avro schema: {error}") from None

    def write(value: Value) -> bytes:
        out = BytesIO()
        try:
            fastavro.schemaless_writer(out, schema, value, strict_allow_default=True)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError):
            raise SerializationError(name, "it does not fit the schema") from None
        return out.getvalue()

    def read(data: bytes) -> Value:
        source = BytesIO(data)
        try:
            value = fastavro.schemaless_reader(source, schema, None)
        except (ValueError, EOFError, IndexError, KeyError, OverflowError, MemoryError):
            raise DeserializationError(name, f"{len(data)} byte(s) that do not fit the schema") from None
        if source.tell() != len(data):
            raise DeserializationError(name, f"{len(data) - source.tell()} byte(s) too many")
        return value

    return Plain(write, read)


def _without_logical_types(schema: Value) -> Value:
    if isinstance(schema, dict):
        return {key: _without_logical_types(each) for key, each in schema.items() if key != "logicalType"}
    if isinstance(schema, list):
        return [_without_logical_types(each) for each in schema]
    return schema
