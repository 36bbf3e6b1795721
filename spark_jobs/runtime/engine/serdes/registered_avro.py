"""Avro whose schemas a registry keeps: one byte 0, the writer's schema as a 4-byte id, the value.

The layout is that of Confluent's serializers. A value is read by the schema that its id names, and written by
the one that was the subject's latest when the application started: the same in each task and each attempt.
"""

import json
from collections.abc import Callable

from spark_jobs.runtime.engine.records import Value
from spark_jobs.runtime.engine.serdes.avro_format import avro
from spark_jobs.runtime.engine.serdes.errors import DeserializationError
from spark_jobs.runtime.engine.serdes.plain import Plain

SchemaOf = Callable[[int], str | None]
"""The text of the schema with an id, None = there is none. Raises RegistryUnavailableError."""
_MAGIC = b"\0"
_HEADER = 5


class RegistryUnavailableError(Exception):
    """The registry gives no answer: nothing is wrong with the record, it can be tried again later."""


def no_registry(schema_id: int) -> str | None:
    """Where nobody told of a registry."""
    raise RegistryUnavailableError(f"schema {schema_id} is asked for, but no registry is configured")


def registered_avro(name: str, latest: str, schema_of: SchemaOf) -> Plain:
    """`latest` = JSON with `id` and `schema`, a schema's text.

    Raises:
        ValueError: The schema is not one.
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

    return Plain(write, read)


def _reader(name: str, header: bytes, schema_of: SchemaOf) -> Plain:
    if len(header) < _HEADER or header[:1] != _MAGIC:
        raise DeserializationError(name, "it does not begin with a zero and a schema's id")
    schema_id = int.from_bytes(header[1:], "big")
    text = schema_of(schema_id)
    if text is None:
        raise DeserializationError(name, f"the registry has no schema {schema_id}")
    try:
        return avro(name, text)
    except ValueError as error:
        raise DeserializationError(name, f"schema {schema_id} cannot be used: {error}") from None
