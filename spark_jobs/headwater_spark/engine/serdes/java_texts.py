"""Texts as Java writes and reads them, where Python differs: JSON, UUIDs and malformed UTF-8."""

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import NoReturn

from headwater.compiler.java.config_values import double_text
from headwater_spark.engine.records import Value

_SURROGATE_BYTES = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]?")
_MALFORMED_BYTE = b"\xff"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_UUID = 36
_UUID_PART = re.compile(r"\+?[0-9a-fA-F]+")
_UUID_DIGITS = (8, 4, 4, 4, 12)
_INT_63 = 2**63

_LOWER_ESCAPE = re.compile(r"\\u00[01][a-f]")
_ESCAPE = re.compile(r"\\(?:u[0-9a-f]{4}|.)")
_FAR_FROM_POINT = re.compile(r"\.(?:(?<=[0-9]{8}\.)|000)")
"""Eight digits before the point, or three zeros after it."""
_EXPONENT = re.compile(r"e[-+][0-9]{2,3}(?:[,\]}]|\Z)")
_JSON_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"'
_JSON_TOKEN = re.compile(_JSON_STRING + r"|-?[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?")
_NOT_FINITE = re.compile(_JSON_STRING + "|NaN|-?Infinity")
SURROGATE = re.compile("[\ud800-\udfff]")
_NOT_IN_16_BITS = re.compile("[\ud800-\udfff\U00010000-\U0010ffff]")
_FIRST_PAIR = 0x10000
_BLANKS = " \t\r\n"
_MALFORMED = "\ufffd"


def _refuse_constant(_name: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
read_json: Callable[[str], Value] = _DECODER.decode
"""JSON → its value, as Jackson reads it: a number such as `1e400` is an infinity.

Raises ValueError for a text that is not JSON, also for the words `NaN` and `Infinity`; RecursionError for one
that is nested too deeply.
"""


def read_json_bytes(data: bytes) -> Value:
    """Return the value that Jackson's `ObjectMapper#readTree` reads, as Kafka's `JsonDeserializer` does.

    The text is UTF-8; with a byte order mark or zero bytes also UTF-16 or UTF-32. What follows the first
    value is ignored, but a number must be followed by a blank, and a word (`true`) by an ASCII character that
    is no letter or digit.

    Raises:
        ValueError: The bytes are not JSON, or empty, which Jackson reads as a node that is missing.
        RecursionError: They are nested too deeply.
    """
    try:
        return read_json(data.decode())
    except ValueError as error:
        try:
            return read_first_json(_decode_as_jackson(data))
        except ValueError:
            raise error from None


def read_first_json(text: str) -> Value:
    """Return the first value of a text of JSON, as Jackson does: the text after it is ignored.

    Raises:
        ValueError: The text does not begin with JSON, or a number or a word continues after it.
        RecursionError: It is nested too deeply.
    """
    value, end = _DECODER.raw_decode(text, len(text) - len(text.lstrip(_BLANKS)))
    after = text[end : end + 1]
    if text[end - 1] in '"]}' or after in _BLANKS:
        return value
    if type(value) in {int, float} or after.isalnum() or after in "_\x7f" or not after.isascii():
        raise ValueError("a number or a word has no end")
    return value


def _decode_as_jackson(data: bytes) -> str:
    """Return the text of bytes up to the first malformed ones, and for these U+FFFD, which is not JSON."""
    encoding = json.detect_encoding(data)
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:  # its bytes have no byte order mark of UTF-8
        return error.object[: error.start].decode(encoding.removesuffix("-sig")) + _MALFORMED


def _format_moment(value: Value) -> str:
    """Return dates and timestamps as Spark's `to_json` writes them."""
    if isinstance(value, datetime):
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    if isinstance(value, date):
        return value.isoformat()
    raise TypeError(f"it contains a value of the Python type {type(value).__name__}")


_encode = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=_format_moment
).encode
_encode_not_finite = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), allow_nan=True, default=_format_moment
).encode


def write_finite_json(value: Value) -> str:
    """Return compact JSON with the numbers and the escapes of Jackson.

    Characters beyond U+FFFF, and halves of surrogate pairs, are written as they are: `escape_pairs`
    replaces them.

    Raises:
        TypeError: JSON cannot represent a part of the value.
        ValueError: The same; the part is NaN, an infinity, or a whole number with thousands of digits.
        RecursionError: The value is nested too deeply.
    """
    return _to_jackson_text(_encode(value))


def write_json(value: Value) -> str:
    """Return the JSON of `write_finite_json`; NaN and infinities are strings, as Jackson writes them.

    Raises:
        TypeError: JSON cannot represent a part of the value.
        ValueError: The value has a whole number with thousands of digits.
        RecursionError: The value is nested too deeply.
    """
    try:
        text = _encode(value)
    except ValueError:
        text = _NOT_FINITE.sub(_to_quoted, _encode_not_finite(value))
    return _to_jackson_text(text)


def _to_quoted(found: re.Match[str]) -> str:
    token = found.group()
    return token if token.startswith('"') else f'"{token}"'


def escape_surrogates(text: str) -> str:
    """Return JSON in which halves of surrogate pairs, which have no UTF-8, are escapes."""
    return SURROGATE.sub(_to_surrogate_escapes, text)


def escape_pairs(text: str) -> str:
    """Return JSON as Jackson writes it to bytes: characters beyond U+FFFF are escapes of their surrogates.

    Halves of surrogate pairs are escapes, too.
    """
    return text if text.isascii() else _NOT_IN_16_BITS.sub(_to_surrogate_escapes, text)


def _to_surrogate_escapes(found: re.Match[str]) -> str:
    code = ord(found.group())
    if code < _FIRST_PAIR:
        return f"\\u{code:04X}"
    high, low = divmod(code - _FIRST_PAIR, 0x400)
    return f"\\u{0xD800 + high:04X}\\u{0xDC00 + low:04X}"


def _to_jackson_text(text: str) -> str:
    if _LOWER_ESCAPE.search(text) is not None:
        text = _ESCAPE.sub(_to_upper_escape, text)
    if _FAR_FROM_POINT.search(text) is None and _EXPONENT.search(text) is None:
        return text
    return _JSON_TOKEN.sub(_to_java_token, text)


def _to_upper_escape(found: re.Match[str]) -> str:
    escape = found.group()
    return f"\\u{escape[2:].upper()}" if escape[1] == "u" else escape


def _to_java_token(found: re.Match[str]) -> str:
    token = found.group()
    if token.startswith('"') or ("." not in token and "e" not in token):
        return token
    return double_text(float(token))


def read_utf8(data: bytes) -> str:
    """Return the text of bytes as `new String(data, UTF_8)` does: malformed parts are read as U+FFFD.

    Half of a surrogate pair is one such part in Java, but three in Python.
    """
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _SURROGATE_BYTES.sub(_MALFORMED_BYTE, data).decode("utf-8", "replace")


def write_utf8(text: str) -> bytes:
    """Return the bytes of a text as `String#getBytes(UTF_8)` does: half of a surrogate pair is `?`."""
    return text.encode("utf-8", "replace")


def normalize_uuid(text: str) -> str:
    """Return the text of the UUID that `UUID#fromString` reads, which also reads fewer digits.

    The digits are ASCII digits; Java also reads other digits of Unicode.

    Raises:
        ValueError: It is not a UUID.
    """
    if _UUID.fullmatch(text) is not None:
        return text
    parts = text.split("-")
    if len(text) > _LONGEST_UUID or len(parts) != len(_UUID_DIGITS):
        raise ValueError("not a UUID")
    return "-".join(map(_uuid_part, parts, _UUID_DIGITS))


def _uuid_part(part: str, digits: int) -> str:
    """Return the last `digits` of a part, which `Long#parseLong` reads."""
    if _UUID_PART.fullmatch(part) is None or int(part, 16) >= _INT_63:
        raise ValueError("not a UUID")
    return f"{int(part, 16) & (1 << 4 * digits) - 1:0{digits}x}"
