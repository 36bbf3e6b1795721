"""JSON, with or without a JSON Schema (draft as in `$schema`, default 2020-12)."""

import json
import re
from datetime import UTC, date, datetime
from typing import NoReturn

import jsonschema
from jsonschema.validators import validator_for
from referencing import Registry

from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.equality import equal_in_java
from headwater_spark.engine.serdes.plain import DeserializationError, Plain, SerializationError


def _no_constant(_name: str) -> NoReturn:
    raise ValueError("NaN and infinities are not JSON")


def _moment(value: Value) -> str:
    """Return dates and timestamps as Spark's `to_json` writes them."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC):%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError


_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_moment).encode
_SURROGATE = re.compile("[\ud800-\udfff]")
_DECODE = json.JSONDecoder(parse_constant=_no_constant).decode


def _write(value: Value) -> bytes:
    try:
        text = _ENCODE(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise SerializationError("json", _fault(error)) from None

    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE.sub(_escaped, text).encode()


def _escaped(surrogate: re.Match[str]) -> str:
    """Return the escape of half of a surrogate pair, which has no UTF-8, as Jackson writes it."""
    return f"\\u{ord(surrogate.group()):04X}"


def _read(data: bytes) -> Value:
    try:
        return _DECODE(data.decode())
    except json.JSONDecodeError as error:
        raise DeserializationError("json", f"{error.msg} at byte {error.pos}") from None
    except (ValueError, RecursionError) as error:
        raise DeserializationError("json", _fault(error)) from None


def _fault(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "nested too deeply"
    if isinstance(error, UnicodeError):
        return "not UTF-8"
    return "it contains something that JSON cannot represent"


JSON = Plain(_write, _read, equal_in_java)


def checked_json(name: str, schema_text: str) -> Plain:
    """Return the serde of JSON that must match a schema.

    Raises:
        ValueError: The text is not a JSON Schema.
    """
    try:
        schema = json.loads(schema_text)
        validator_class = validator_for(schema, default=jsonschema.Draft202012Validator)
        validator_class.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"invalid JSON Schema: {error.message}") from None
    _refuse_references_outside(schema)
    validator = validator_class(schema, registry=Registry())
    is_valid = validator.is_valid

    def fault(value: Value) -> str:
        found = next(validator.iter_errors(value))
        where = "/".join(map(str, found.absolute_schema_path))
        return f"the value violates {where} of the schema"

    def write(value: Value) -> bytes:
        if not is_valid(value):
            raise SerializationError(name, fault(value))
        return _write(value)

    def read(data: bytes) -> Value:
        value = _read(data)
        if not is_valid(value):
            raise DeserializationError(name, fault(value))
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
