"""Digests and encodings of strings and bytes, and JSON in strings.

Values of JSON topics are objects, and do not need the functions of JSON.
"""

import base64
import hashlib
import json
import math
import re
import zlib
from collections.abc import Mapping
from datetime import date, datetime

from headwater.compiler.java.numbers import double_text
from headwater_spark.engine.expressions.casts import to_text, to_whole
from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions.table import Function, strict
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.java_texts import read_json, to_jackson_text

_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]|\['([^']*)'\]")
"""A step of the path of `get_json_object`."""

_SHA2 = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def _to_bytes(value: Value) -> bytes:
    """Return the bytes of a value; a text is encoded as UTF-8, other values as their text."""
    return value if type(value) is bytes else to_text(value).encode()


def sha2(value: Value, bits: Value) -> Value:
    digest = _SHA2.get(to_whole(bits))
    return digest(_to_bytes(value)).hexdigest() if digest is not None else None


def unbase64(value: Value) -> Value:
    try:
        return base64.b64decode(_to_bytes(value), validate=True)
    except ValueError:
        raise EvaluationError("a STRING is not valid base64") from None


def unhex(value: Value) -> Value:
    text = to_text(value)
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)
    except ValueError:
        return None


def _parse_json(value: Value) -> Value:
    """Return the value that a text of JSON has; null if it is not JSON."""
    try:
        return read_json(to_text(value))
    except (ValueError, RecursionError):
        return None


def get_json_object(value: Value, path: Value) -> Value:
    """Return the value at a path such as `$.a.b[0]`; null if it does not exist or the text is not JSON."""
    found, at, text = _parse_json(value), 1, to_text(path)
    if not text.startswith("$"):
        return None
    while at < len(text):
        step = _PATH_STEP.match(text, at)
        if step is None:
            return None
        name = step[1] if step[1] is not None else step[3]
        if name is not None:
            found = found.get(name) if type(found) is dict else None
        else:
            index = int(step[2])
            found = found[index] if type(found) is list and index < len(found) else None
        at = step.end()
    if found is None or type(found) is str:
        return found
    return _write_json(found)


def _write_json(value: Value) -> str:
    return to_jackson_text(json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_format_time))


def _format_time(value: Value) -> str:
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%dT%H:%M:%S}.{value.microsecond // 1000:03d}Z"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError


def to_json(value: Value) -> Value:
    """Write JSON without null fields, as Spark does: NaN and infinities are strings."""
    if type(value) not in {dict, list}:
        raise EvaluationError("`to_json` requires a STRUCT or an ARRAY")
    try:
        return _write_json(_to_jackson_value(value))
    except TypeError:
        raise EvaluationError("`to_json` has a value that JSON cannot represent") from None


def _to_jackson_value(value: Value) -> Value:
    """Return a value without null fields, and with the texts of numbers that JSON does not have."""
    if type(value) is dict:
        return {name: _to_jackson_value(each) for name, each in value.items() if each is not None}
    if type(value) is list:
        return [_to_jackson_value(each) for each in value]
    if type(value) is float and not math.isfinite(value):
        return double_text(value)
    return value


def json_array_length(value: Value) -> Value:
    found = _parse_json(value)
    return len(found) if type(found) is list else None


FUNCTIONS: Mapping[str, Function] = {
    "md5": strict(lambda value: hashlib.md5(_to_bytes(value), usedforsecurity=False).hexdigest(), 1),
    "sha": strict(lambda value: hashlib.sha1(_to_bytes(value), usedforsecurity=False).hexdigest(), 1),
    "sha1": strict(lambda value: hashlib.sha1(_to_bytes(value), usedforsecurity=False).hexdigest(), 1),
    "sha2": strict(sha2, 2),
    "crc32": strict(lambda value: zlib.crc32(_to_bytes(value)), 1),
    "base64": strict(lambda value: base64.b64encode(_to_bytes(value)).decode(), 1),
    "unbase64": strict(unbase64, 1),
    "unhex": strict(unhex, 1),
    "get_json_object": strict(get_json_object, 2),
    "parse_json": strict(_parse_json, 1),
    "to_json": strict(to_json, 1),
    "json_array_length": strict(json_array_length, 1),
}
