"""The serde of Avro values, and the reader of values that another version of their schema has written.

Logical types are read as their underlying types: a `timestamp-millis` is a long, as everywhere in the
runtime.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from io import BytesIO
from typing import Any

import fastavro
from fastavro.read import SchemaResolutionError
from fastavro.schema import SchemaParseException, UnknownType

from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.avro_limits import limits_of
from headwater_spark.engine.serdes.plain import (
    DeserializationError,
    Plain,
    SerializationError,
    equal_in_bytes,
    equal_in_java,
)

_ADDED_FIELDS = "record contains more fields than the schema specifies: "
_MISSING_FIELD = " is specified in the schema but missing"
_NO_DEFAULT = "No default value for field "
"""What fastavro says; other texts may contain values, and are not shown."""
_ONLY_FIELD = "value"
_PARSED, _NAMED = "__fastavro_parsed", "__named_schemas"
"""What fastavro adds to the parsed schema of a record."""
_Schema = Any
"""A parsed schema: the JSON of fastavro."""


def avro_serde(name: str, schema_text: str) -> Plain:
    """Return the serde of one schema.

    Raises:
        ValueError: The text is not an Avro schema.
    """
    schema = _parse_schema(schema_text)

    def write(value: Value) -> bytes:
        out = BytesIO()
        try:
            fastavro.schemaless_writer(out, schema, value, strict_allow_default=True)
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise SerializationError(name, f"it does not match the schema{_describe_fields(error)}") from None
        return out.getvalue()

    equal_bytes = equal_in_bytes(write)

    def equal(one: Value, other: Value) -> bool:
        """Compare maps without their order, and numbers with the types of the schema."""
        return equal_in_java(one, other) or equal_bytes(one, other)

    return Plain(write, _make_reader(name, schema, None), equal)


def avro_of_other_version(name: str, schema_text: str, known_text: str) -> Plain:
    """Return the serde that reads values of another version, and converts them to the known one.

    It follows Avro's schema resolution, as `SpecificAvroSerde` does: a field that the known version does not
    have is not read, a field that the value does not have gets its default. A record with another name than
    the known one is a value of another type, and is read as it is (`KafkaAvroDeserializer` finds the class of
    a record by its name).

    Raises:
        ValueError: A text is not an Avro schema.
    """
    schema, known = _parse_schema(schema_text), _parse_schema(known_text)
    is_same = _is_same_record(schema, known)
    read = _make_reader(name, schema, known if is_same else None)

    def read_copy(data: bytes) -> Value:
        return deepcopy(read(data))

    def write(_: Value) -> bytes:
        raise SerializationError(name, "only the latest version of the schema is written")

    return Plain(write, read_copy if is_same and _has_changeable_defaults(known) else read)


def unread_avro_fields(schema_text: str, known_text: str) -> Iterator[str]:
    """Yield the fields that values of another version have, and the known one does not: `Record.field`.

    Raises:
        ValueError: A text is not an Avro schema.
    """
    schema, known = _parse_schema(schema_text), _parse_schema(known_text)
    if _is_same_record(schema, known):
        known_records = _records_of(known)
        for name, record in _records_of(schema).items():
            if name in known_records:
                names = set(_field_names(known_records[name]))
                yield from (
                    f"{name}.{each['name']}" for each in record["fields"] if each["name"] not in names
                )


def _field_names(record: _Schema) -> Iterator[str]:
    """Yield the names and the aliases of the fields of a record."""
    for field in record["fields"]:
        yield field["name"]
        yield from field.get("aliases", ())


def _has_changeable_defaults(schema: _Schema) -> bool:
    """Return whether a default is an array, a map or a record: fastavro returns the same object each time."""
    return any(
        isinstance(field.get("default"), list | dict)
        for record in _records_of(schema).values()
        for field in record["fields"]
    )


def _make_reader(name: str, schema: _Schema, known: _Schema) -> Callable[[bytes], Value]:
    """Return a function that reads values of `schema`, as values of `known` unless that is None.

    Raises:
        ValueError: A record of the schema has no end.
    """
    named: dict[str, _Schema] = {}
    _collect_named(schema, named)
    check_limits = limits_of(schema, named)
    is_record = _record_name(schema) is not None
    checked = _with_checked_names(schema if is_record else _record_of(schema), named)

    def read(data: bytes) -> Value:
        if check_limits is not None:
            try:
                check_limits(data)
            except ValueError as error:
                raise DeserializationError(name, str(error)) from None
        source = BytesIO(data)
        try:
            value: Value = fastavro.schemaless_reader(source, checked, known)
        except SchemaResolutionError as error:
            raise DeserializationError(name, f"it cannot be converted{_describe_conflict(error)}") from None
        except (ValueError, EOFError, IndexError, KeyError, OverflowError):
            raise DeserializationError(name, f"{len(data)} byte(s) that do not match the schema") from None
        if source.tell() != len(data):
            raise DeserializationError(name, f"{len(data) - source.tell()} byte(s) too many")
        return value if is_record else value[_ONLY_FIELD]

    return read


def _record_of(schema: _Schema) -> _Schema:
    """Return the schema of a record whose only field has a schema: the field's bytes are all that it has."""
    return {"type": "record", "name": "_Value", "fields": [{"name": _ONLY_FIELD, "type": schema}]}


def _with_checked_names(record: _Schema, named: Mapping[str, _Schema]) -> _Schema:
    """Return the schema of a record for reading: fastavro counts negative indexes from the end.

    So the symbols of enums and the types of unions are found by their indexes only. fastavro does not parse
    this schema: it is marked as parsed.
    """
    checked = {name: _with_checked_indexes(each) for name, each in named.items()}
    return {**_with_checked_indexes(record), _PARSED: True, _NAMED: checked}


def _with_checked_indexes(schema: _Schema) -> _Schema:
    if isinstance(schema, list):
        return _without_negative_indexes(list(map(_with_checked_indexes, schema)))
    if not isinstance(schema, dict):
        return schema
    checked = {**schema}
    if "symbols" in checked:
        checked["symbols"] = dict(enumerate(checked["symbols"]))
    if "fields" in checked:
        checked["fields"] = [
            {**field, "type": _with_checked_indexes(field["type"])} for field in checked["fields"]
        ]
    for inner in {"items", "values", "type"} & checked.keys():
        checked[inner] = _with_checked_indexes(checked[inner])
    return checked


def _without_negative_indexes(types: list[_Schema]) -> list[_Schema]:
    """Return the types of a union as a list whose end is not known, so that no index counts from it.

    fastavro accepts lists only. The method of a dict is nearly as fast as a list, and a function is not.
    """
    methods = {"__getitem__": dict(enumerate(types)).__getitem__, "__len__": lambda _: 0}
    union: list[_Schema] = type("Union", (list,), methods)(types)
    return union


def _describe_fields(error: Exception) -> str:
    """Return which fields of a record do not match its schema, if fastavro names them; never values."""
    text = str(error)
    if (added := text.removeprefix(_ADDED_FIELDS)) != text:
        return f", which has no field {added}"
    if _MISSING_FIELD in text:
        return f": {text.partition(_MISSING_FIELD)[0].removeprefix('Field ')} is missing"
    return ""


def _describe_conflict(error: Exception) -> str:
    """Return which field has neither a value nor a default, if fastavro names it; never values."""
    text = str(error)
    if (field := text.removeprefix(_NO_DEFAULT)) != text:
        return f": {field.partition(' ')[0]} is missing, and has no default"
    return ": a type, a union or an enum differs"


def _is_same_record(schema: _Schema, known: _Schema) -> bool:
    return _record_name(schema) is not None and _record_name(schema) == _record_name(known)


def _record_name(schema: _Schema) -> str | None:
    return schema["name"] if isinstance(schema, dict) and schema["type"] == "record" else None


def _records_of(schema: _Schema) -> Mapping[str, _Schema]:
    """Return the records of a parsed schema, by their full names."""
    named: dict[str, _Schema] = {}
    _collect_named(schema, named)
    return {name: each for name, each in named.items() if each["type"] == "record"}


def _parse_schema(schema_text: str) -> _Schema:
    """Return a parsed schema whose defaults are values: fastavro leaves them as the JSON that they are."""
    try:
        schema = fastavro.parse_schema(_simplify_schema(json.loads(schema_text)))
    except RecursionError:
        raise ValueError("invalid Avro schema: it is nested too deeply") from None
    except (SchemaParseException, UnknownType, KeyError, TypeError) as error:
        raise ValueError(f"invalid Avro schema: {error}") from None
    named: dict[str, _Schema] = {}
    _collect_named(schema, named)
    for record in [each for each in named.values() if each["type"] == "record"]:
        for field in record["fields"]:
            if "default" in field:
                field["default"] = _default_value(field["type"], field["default"], named)
    return schema


def _simplify_schema(schema: Value) -> Value:
    """Return a schema without logical types, and with its errors as the records that they are in Java."""
    if isinstance(schema, list):
        return list(map(_simplify_schema, schema))
    if not isinstance(schema, dict):
        return schema
    found = {key: _simplify_schema(each) for key, each in schema.items() if key != "logicalType"}
    return {**found, "type": "record"} if found.get("type") == "error" and "fields" in found else found


def _collect_named(schema: _Schema, named: dict[str, _Schema]) -> None:
    """Add the records, enums and fixed types of a parsed schema, by their full names."""
    if isinstance(schema, list):
        for branch in schema:
            _collect_named(branch, named)
    elif isinstance(schema, dict):
        if "name" in schema:
            named[schema["name"]] = schema
        for field in schema.get("fields", ()):
            _collect_named(field["type"], named)
        for inner in ("items", "values"):
            _collect_named(schema.get(inner), named)
        _collect_named(schema["type"], named)


def _default_value(schema: _Schema, default: Value, named: Mapping[str, _Schema]) -> Value:
    """Return a default as the value that is read: bytes are texts in JSON, a double may be `0`."""
    if isinstance(schema, list):
        return _default_value(_branch_of(schema, default, named), default, named)
    resolved = named.get(schema, schema) if isinstance(schema, str) else schema
    kind = resolved["type"] if isinstance(resolved, dict) else resolved
    if kind in {"bytes", "fixed"} and isinstance(default, str):
        return default.encode("latin-1")
    if kind in {"double", "float"} and isinstance(default, int):
        return float(default)
    if kind == "array":
        return [_default_value(resolved["items"], each, named) for each in default]
    if kind == "map":
        return {key: _default_value(resolved["values"], each, named) for key, each in default.items()}
    if kind == "record":
        return _default_record(resolved, default, named)
    return default


def _default_record(record: _Schema, default: Mapping[str, Value], named: Mapping[str, _Schema]) -> Value:
    return {
        field["name"]: _default_value(field["type"], default.get(field["name"], field.get("default")), named)
        for field in record["fields"]
    }


def _branch_of(union: list[_Schema], default: Value, named: Mapping[str, _Schema]) -> _Schema:
    """Return the type of a union that a default has: the first one, or since Avro 1.12 any that fits."""
    fitting = (branch for branch in union if _has_type(branch, default, named))
    return next(fitting, union[0])


def _has_type(branch: _Schema, default: Value, named: Mapping[str, _Schema]) -> bool:
    resolved = named.get(branch, branch) if isinstance(branch, str) else branch
    kind = resolved["type"] if isinstance(resolved, dict) else resolved
    return type(default) in _KINDS.get(kind, ())


_KINDS: Mapping[str, tuple[type, ...]] = {
    "null": (type(None),),
    "boolean": (bool,),
    "int": (int,),
    "long": (int,),
    "float": (int, float),
    "double": (int, float),
    "string": (str,),
    "enum": (str,),
    "bytes": (str, bytes),
    "fixed": (str, bytes),
    "array": (list,),
    "map": (dict,),
    "record": (dict,),
}
"""Type → the types of Python that its default has in JSON; bytes also if it is already a value."""
