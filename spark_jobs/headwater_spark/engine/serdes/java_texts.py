"""Texts as Java writes and reads them, where Python differs: numbers, UUIDs and malformed UTF-8."""

import math
import re

_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-3, 1e7

_SURROGATE_BYTES = re.compile(b"\xed[\xa0-\xbf][\x80-\xbf]?")
_MALFORMED_BYTE = b"\xff"

_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_LONGEST_UUID = 36
_UUID_PART = re.compile(r"\+?[0-9a-fA-F]+")
_UUID_DIGITS = (8, 4, 4, 4, 12)
_INT_63 = 2**63

_FAR_FROM_POINT = re.compile(r"\.(?:(?<=[0-9]{8}\.)|000)")
"""Eight digits before the point, or three zeros after it."""
_EXPONENT = re.compile(r"e[-+][0-9]{2,3}(?:[,\]}]|\Z)")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9]+(?:\.[0-9]+)?(?:e[-+][0-9]+)?')


def double_text(value: float) -> str:
    """Return a double as `Double#toString` does: `1.0`, `1.0E7`, `NaN`, `Infinity`."""
    if value != value:  # noqa: PLR0124 - NaN
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    magnitude = abs(value)
    if magnitude == 0 or _SMALLEST_PLAIN <= magnitude < _LARGEST_PLAIN:
        text = repr(value)
        return text if "e" not in text else f"{value:f}"
    digits, _, exponent = f"{value!r}e0".partition("e")
    sign, digits = ("-", digits[1:]) if digits.startswith("-") else ("", digits)
    power = int(exponent.partition("e")[0])
    whole, _, fraction = digits.partition(".")
    significant = (whole + fraction).lstrip("0")
    leading = len(whole) - 1 if whole != "0" else -(len(fraction) - len(fraction.lstrip("0")) + 1)
    significant = significant.rstrip("0") or "0"
    return f"{sign}{significant[0]}.{significant[1:] or '0'}E{power + leading}"


def with_java_numbers(text: str) -> str:
    """Return compact JSON of Python's encoder with the floating-point numbers of Jackson."""
    if _FAR_FROM_POINT.search(text) is None and _EXPONENT.search(text) is None:
        return text
    return _JSON_TOKEN.sub(_java_token, text)


def _java_token(found: re.Match[str]) -> str:
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


def uuid_text(text: str) -> str:
    """Return the text of the UUID that `UUID#fromString` reads, which also reads fewer digits.

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
