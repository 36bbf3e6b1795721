"""The serdes of JSON and of values with a schema, and the serde of each format by its name.

JSON Schema has the draft that `$schema` names, by default 2020-12. A schema is in a file (no header), or in
a schema registry (header: 0, schema id in 4 bytes) as Confluent's serializers write it.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import lru_cache

import attrs
import jsonschema
from jsonschema.validators import validator_for
from referencing import Registry

from headwater.model.formats import Format
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.avro import avro_of_other_version, avro_serde, unread_avro_fields
from headwater_spark.engine.serdes.java_texts import (
    escape_pairs,
    read_json_bytes,
    write_finite_json,
    write_json,
)
from headwater_spark.engine.serdes.plain import (
    PLAIN,
    DeserializationError,
    Plain,
    SerializationError,
    equal_in_java,
    session_windowed,
    time_windowed,
)
from headwater_spark.engine.serdes.protobuf import (
    protobuf_of_other_version,
    protobuf_serde,
    registered_protobuf,
    unread_protobuf_fields,
)

SchemaOf = Callable[[int], str | None]
"""Schema id → text of the schema; None = no such schema. Raises RegistryUnavailableError or
CompilerUnavailableError, and ValueError for a schema that cannot be used."""
_OTHER_TYPE = "it contains a value of the Python type "
_TOO_MANY_DIGITS = "integer string conversion"
"""What Python says; other texts may contain values, and are not shown."""
_MAGIC = b"\0"
_HEADER = 5


def _text_writer(encode: Callable[[Value], str]) -> Callable[[Value], bytes]:
    def write(value: Value) -> bytes:
        try:
            text = encode(value)
        except (TypeError, ValueError, RecursionError) as error:
            raise SerializationError("json", _fault_text(error)) from None
        return escape_pairs(text).encode()

    return write


def _read_json(data: bytes) -> Value:
    try:
        return read_json_bytes(data)
    except json.JSONDecodeError as error:
        fault = error.msg.removesuffix(" at")
        raise DeserializationError("json", f"{fault} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise DeserializationError("json", _fault_text(error)) from None


def _fault_text(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    if isinstance(error, TypeError) and str(error).startswith(_OTHER_TYPE):
        return str(error)
    if _TOO_MANY_DIGITS in str(error):
        return f"a whole number has more than {sys.get_int_max_str_digits():,} digits"
    return "it contains something that JSON cannot represent"


JSON = Plain(_text_writer(write_json), _read_json, equal_in_java)
_write_finite = _text_writer(write_finite_json)


def checked_json(name: str, schema_text: str) -> Plain:
    """Return the serde of JSON that must match a schema.

    NaN and infinities cannot be written: as strings, they would violate the schema of a number.

    Raises:
        ValueError: The text is not a JSON Schema.
    """
    try:
        schema = json.loads(schema_text)
        validator_class = validator_for(schema, default=jsonschema.Draft202012Validator)
        validator_class.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"invalid JSON Schema: {error.message}") from None
    except RecursionError:
        raise ValueError("invalid JSON Schema: it is nested too deeply") from None
    _refuse_references_outside(schema)
    validator = validator_class(schema, registry=Registry())

    def fault(value: Value) -> str | None:
        try:
            if validator.is_valid(value):
                return None
            found = next(validator.iter_errors(value))
        except RecursionError:
            return "nested too deeply to be compared with the schema"
        where = "/".join(map(str, found.absolute_schema_path))
        return f"the value violates {where} of the schema"

    def write(value: Value) -> bytes:
        found = fault(value)
        if found is not None:
            raise SerializationError(name, found)
        return _write_finite(value)

    def read(data: bytes) -> Value:
        value = _read_json(data)
        found = fault(value)
        if found is not None:
            raise DeserializationError(name, found)
        return value

    return Plain(write, read, equal_in_java)


def _refuse_references_outside(schema: Value) -> None:
    """Reject references outside the schema: they are never fetched. With an `$id`, all are accepted here."""
    pending: list[Value] = [schema]
    references: list[str] = []
    has_id = False
    while pending:
        part = pending.pop()
        if isinstance(part, dict):
            has_id = has_id or "$id" in part
            references += [part["$ref"]] if isinstance(part.get("$ref"), str) else []
            pending += part.values()
        elif isinstance(part, list):
            pending += part
    outside = next((each for each in references if not each.startswith("#")), None)
    if outside is not None and not has_id:
        raise ValueError(f"it refers to {outside}, which is not in the file")


class RegistryUnavailableError(Exception):
    """The schema registry does not answer. The record may be valid: retry the batch."""


class CompilerUnavailableError(Exception):
    """protoc is not installed, or cannot run. The record may be valid: retry the batch."""


def no_registry(schema_id: int) -> str | None:
    """Raise RegistryUnavailableError: no schema registry is configured (`SchemaOf`)."""
    raise RegistryUnavailableError(f"schema {schema_id} is required, but no schema registry is configured")


MakeSerde = Callable[[str, str], Plain]
"""Format and text of the schema → serde. Raises ValueError: the text is not such a schema."""
MakeReader = Callable[[str, str, str], Plain]
"""Format, text of another version of the schema, text of the known version → serde that reads the other one.

Raises ValueError: a text is not such a schema.
"""


@attrs.frozen
class UnreadFields:
    """Fields of another version of a schema that the version at the start does not have."""

    format: str
    schema_id: int
    id_at_start: int
    names: tuple[str, ...]
    """With the full names of their records or messages: `shop.Order.note`."""


ReportUnread = Callable[[UnreadFields], None]
"""Is called when a serde reads the first value of a version with such fields."""


def report_nothing(_: UnreadFields) -> None:
    """Report nothing (`ReportUnread`)."""


def registered_serde(
    name: str, kind: "RegisteredKind", latest: str, schema_of: SchemaOf, report: ReportUnread
) -> Plain:
    """Return a serde that writes with the latest schema, and converts other versions to it when it reads.

    So producers may write a newer version while the application runs. `latest` is JSON with `id` and
    `schema`, a text: the latest version when the application started, the same for all tasks and attempts.

    Raises:
        ValueError: The schema is not one of this format.
    """
    found = json.loads(latest)
    writer = kind.make(name, found["schema"])
    header = _MAGIC + int(found["id"]).to_bytes(4, "big")
    readers = {header: writer}

    def write(value: Value) -> bytes:
        try:
            return header + writer.serialize(value)
        except SerializationError as error:
            for newer in filter(header.__lt__, sorted(readers) if kind.writes_newer else ()):
                with suppress(SerializationError):
                    return newer + readers[newer].serialize(value)
            version = f"schema id {found['id']}, the latest version when the application started"
            raise SerializationError(name, f"{error.fault} ({version})") from None

    def other_version(header: bytes) -> Plain:
        def make(text: str) -> Plain:
            reader = kind.make_reader(name, text, found["schema"])
            if unread := tuple(sorted(kind.unread_fields(text, found["schema"]))):
                report(UnreadFields(name, int.from_bytes(header[1:]), int(found["id"]), unread))
            return reader

        return _registered_reader(name, header, make, schema_of)

    def read(data: bytes) -> Value:
        reader = readers.get(data[:_HEADER])
        if reader is None:
            reader = readers[data[:_HEADER]] = other_version(data[:_HEADER])
        return reader.deserialize(data[_HEADER:])

    return Plain(write, read, writer.equal)


def _registered_reader(name: str, header: bytes, make: Callable[[str], Plain], schema_of: SchemaOf) -> Plain:
    if len(header) < _HEADER or header[:1] != _MAGIC:
        raise DeserializationError(name, "it does not start with 0 and a schema id")
    schema_id = int.from_bytes(header[1:], "big")
    try:
        text = schema_of(schema_id)
        if text is not None:
            return make(text)
    except ValueError as error:
        raise DeserializationError(name, f"schema {schema_id} cannot be used: {error}") from None
    raise DeserializationError(name, f"the registry has no schema {schema_id}")


def _json_of_other_version(name: str, schema_text: str, _known_text: str) -> Plain:
    """Return the serde of another version: JSON names its fields, so its values need no conversion."""
    return checked_json(name, schema_text)


def _no_unread_fields(_schema_text: str, _known_text: str) -> Iterable[str]:
    return ()


@attrs.frozen
class RegisteredKind:
    """A format with schemas of a registry: `schemaType`, serde, and the serdes of other versions."""

    type: str
    make: MakeSerde
    make_reader: MakeReader
    unread_fields: Callable[[str, str], Iterable[str]] = _no_unread_fields
    """Text of another version, text of the known version → the fields that are not read."""
    writes_newer: bool = False
    """A value that fits only a newer version that was read is written with it; otherwise it is refused."""


_WITH_SCHEMA: Mapping[str, MakeSerde] = {"json": checked_json, "avro": avro_serde, "protobuf": protobuf_serde}
_REGISTERED: Mapping[str, RegisteredKind] = {
    "avro-registry": RegisteredKind("AVRO", avro_serde, avro_of_other_version, unread_avro_fields),
    "json-registry": RegisteredKind("JSON", checked_json, _json_of_other_version, writes_newer=True),
    "protobuf-registry": RegisteredKind(
        "PROTOBUF", registered_protobuf, protobuf_of_other_version, unread_protobuf_fields
    ),
}


class UnknownFormatError(ValueError):
    """There is no format of this name, or its schema is missing."""


def is_schema_format(name: str) -> bool:
    """Return whether the format names a schema file."""
    kind, colon, _file = name.partition(":")
    return bool(colon) and kind in _WITH_SCHEMA


def schema_kind(name: str) -> str:
    """Return `json`, `avro` or `protobuf` for a format with a schema file."""
    return name.partition(":")[0]


def schema_subject(name: str) -> str | None:
    """Return the subject of the schema registry that the format names, if any."""
    kind, colon, named = name.partition(":")
    if not colon or kind not in _REGISTERED:
        return None
    return named.partition("#")[0] if kind == "protobuf-registry" else named


def schema_type(name: str) -> str:
    """Return the type that the schema of the format has in a registry; `name` has a subject."""
    return _REGISTERED[name.partition(":")[0]].type


def schema_key(name: str) -> str:
    """Return the key of the format's schema: the file name, or the format itself for a subject."""
    if schema_subject(name) is not None:
        return name
    kind, _, file = name.partition(":")
    return file.partition("#")[0] if kind == "protobuf" else file


@lru_cache(maxsize=1024)
def plain_serde(
    name: str,
    schema: str | None = None,
    schema_of: SchemaOf = no_registry,
    report: ReportUnread = report_nothing,
) -> Plain:
    """Return the serde of a format without windows.

    Args:
        name: The format.
        schema: The text of the schema file; of a subject the latest version, as JSON with `id` and `schema`.
        schema_of: Returns the other versions of a subject's schema by id.
        report: Is called with the fields of another version that are not read.

    Raises:
        UnknownFormatError: There is no such format, or its schema is missing.
        ValueError: The schema is not valid.
    """
    if name == "json":
        return JSON
    if name in PLAIN:
        return PLAIN[name]
    kind, colon, _file = name.partition(":")
    if colon and kind in _WITH_SCHEMA:
        if schema is None:
            raise UnknownFormatError(f"the schema file of {name} is missing")
        return _WITH_SCHEMA[kind](name, schema)
    if schema_subject(name) is not None:
        if schema is None:
            raise UnknownFormatError(f"the schema of {name} is missing")
        return registered_serde(name, _REGISTERED[kind], schema, schema_of, report)
    if kind == "time-windowed":
        raise UnknownFormatError(
            f"unknown format {name}; the size is a number of milliseconds, as in time-windowed:60000"
        )
    subjects = (f"{each}:SUBJECT" for each in _REGISTERED)
    known = ", ".join(sorted((*PLAIN, "json", "json:FILE", "avro:FILE", "protobuf:FILE", *subjects)))
    raise UnknownFormatError(f"unknown format {name}; the formats are {known}")


def serde_of(
    wanted: Format,
    schemas: Mapping[str, str],
    schema_of: SchemaOf = no_registry,
    report: ReportUnread = report_nothing,
) -> Plain:
    """Return the serde of a format. `schemas`: `schema_key` → text. Raises as `plain_serde` does."""
    inner = plain_serde(wanted.name, schemas.get(schema_key(wanted.name)), schema_of, report)
    if wanted.window is None:
        return inner
    return time_windowed(inner, wanted.size_ms) if wanted.window == "time" else session_windowed(inner)
