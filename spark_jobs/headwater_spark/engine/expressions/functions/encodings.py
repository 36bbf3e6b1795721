"""Digests and encodings of strings and bytes, and JSON in strings.

Values of JSON topics are objects, and do not need the functions of JSON.
"""

import base64
import hashlib
import re
import zlib
from collections.abc import Mapping

from headwater_spark.engine.expressions.casts import to_text, to_whole
from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions.table import Function, strict
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.java_texts import (
    SURROGATE,
    escape_pairs,
    escape_surrogates,
    read_first_json,
    read_json,
    write_json,
    write_utf8,
)

_PATH_STEP = re.compile(r"\.([^.\[\]]+)|\[([0-9]+)\]|\['([^']*)'\]")
"""A step of the path of `get_json_object`."""

_HEX_DIGITS = re.compile("[0-9A-Fa-f]*")
_NO_BASE64_DIGITS = re.compile(b"[^A-Za-z0-9+/]+")
_BASE64_DIGIT = re.compile(b"[A-Za-z0-9+/]")

_SHA2 = {
    0: hashlib.sha256,
    224: hashlib.sha224,
    256: hashlib.sha256,
    384: hashlib.sha384,
    512: hashlib.sha512,
}


def _to_bytes(value: Value) -> bytes:
    """Return the bytes of a value; a text is encoded as in Java, other values as their text."""
    return value if type(value) is bytes else write_utf8(to_text(value))


def sha2(value: Value, bits: Value) -> Value:
    """Return the SHA-2 digest of a BINARY, or of another value's text in UTF-8, as a hexadecimal text.

    `bits` is 224, 256, 384 or 512; 0 = 256. The result is null for other numbers.

    Raises:
        EvaluationError: `bits` is not a whole number, or `value` has no text.
    """
    digest = _SHA2.get(to_whole(bits))
    return digest(_to_bytes(value)).hexdigest() if digest is not None else None


def unbase64(value: Value) -> Value:
    """Return the bytes that a text has in base64, as Java's MIME decoder reads it.

    Characters that are no digits of base64 are ignored; padding at the end may be missing. The result is
    never null.

    Raises:
        EvaluationError: The text has a digit after its padding, or a wrong number of digits or of `=`.
    """
    text, padding, after = _to_bytes(value).partition(b"=")
    digits = _NO_BASE64_DIGITS.sub(b"", text)
    more = len(digits) % 4
    is_padded = not padding or more == 3 or (more == 2 and after.startswith(b"="))  # noqa: PLR2004 - as RFC 4648
    if more == 1 or not is_padded or _BASE64_DIGIT.search(after) is not None:
        raise EvaluationError("a STRING is not valid base64")
    return base64.b64decode(digits + b"=" * (-len(digits) % 4))


def unhex(value: Value) -> Value:
    """Return the bytes of a text of hexadecimal digits; an odd number of digits is read with a 0 before them.

    The result is null if the text has other characters, also if they are blanks.

    Raises:
        EvaluationError: `value` has no text.
    """
    text = to_text(value)
    if _HEX_DIGITS.fullmatch(text) is None:
        return None
    return bytes.fromhex(text if len(text) % 2 == 0 else "0" + text)


def _parse_json(value: Value) -> Value:
    """Return the value that a text of JSON has; null if it is not JSON."""
    try:
        return read_json(to_text(value))
    except (ValueError, RecursionError):
        return None


def _first_json(value: Value) -> Value:
    """Return the first value that a text of JSON has; null if it is not JSON."""
    try:
        return read_first_json(to_text(value))
    except (ValueError, RecursionError):
        return None


def get_json_object(value: Value, path: Value) -> Value:
    """Return the value at a path such as `$.a.b[0]` as a text: a string as it is, other values as JSON.

    The result is null if the value does not exist, or is null or a string with half of a surrogate pair; if
    the text is not JSON; and if the path is not valid. Text after the first value of the text is ignored.

    Raises:
        EvaluationError: An index exceeds a BIGINT, or an argument has no text.
    """
    found, at, text = _first_json(value), 1, to_text(path)
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
            index = to_whole(step[2])
            found = found[index] if type(found) is list and index < len(found) else None
        at = step.end()
    if type(found) is str:
        return found if SURROGATE.search(found) is None else None
    try:
        return None if found is None else escape_pairs(write_json(found))
    except RecursionError:
        return None


def to_json(value: Value) -> Value:
    """Return the JSON of a STRUCT or an ARRAY without null fields: NaN and infinities are strings.

    The result is never null.

    Raises:
        EvaluationError: The value is of another type, is nested too deeply, or contains bytes or another
            value that JSON cannot represent.
    """
    if type(value) not in {dict, list}:
        raise EvaluationError("`to_json` requires a STRUCT or an ARRAY")
    try:
        return escape_surrogates(write_json(_without_nulls(value)))
    except (TypeError, ValueError):
        raise EvaluationError("`to_json` has a value that JSON cannot represent") from None
    except RecursionError:
        raise EvaluationError("`to_json` has a value that is nested too deeply") from None


def _without_nulls(value: Value) -> Value:
    """Return a value without null fields; elements of arrays stay."""
    if type(value) is dict:
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    if type(value) is list:
        return [_without_nulls(each) for each in value]
    return value


def json_array_length(value: Value) -> Value:
    """Return the number of elements of the array in a text of JSON; null if it is not JSON or no array.

    Text after the array is ignored.

    Raises:
        EvaluationError: `value` has no text.
    """
    found = _first_json(value)
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
