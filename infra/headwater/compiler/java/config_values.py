"""Texts of configs as Java reads them: `ConfigDef#parseType`, and the parsers of the JDK that it calls.

Each parser returns None for a text that Java refuses. `double_text` writes a number as Java does.
"""

import math
import re
from decimal import Decimal

_BLANK = "".join(map(chr, range(0x21)))
"""What Java's `String#trim` removes."""
_LAST_CHAR = "\uffff"
_PLAIN_DIGITS = 9
"""So many ASCII digits fit into every type but `short`."""
_DECIMAL = re.compile(
    r"([-+]?(?:NaN|Infinity|[0-9]+\.?[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?))([fFdD]?)"
)
_HEXADECIMAL = re.compile(r"([-+]?0[xX](?:[0-9a-fA-F]+\.?|[0-9a-fA-F]*\.[0-9a-fA-F]+)[pP][-+]?[0-9]+)[fFdD]?")
_COMMA = re.compile(r"\s*,\s*", re.ASCII)
_DURATION = re.compile(
    r"[-+]?P(?:([-+]?[0-9]+)D)?(T(?:([-+]?[0-9]+)H)?(?:([-+]?[0-9]+)M)?(?:([-+]?[0-9]+)(?:[.,]([0-9]{0,9}))?S)?)?",
    re.IGNORECASE | re.ASCII,
)
_SECONDS = (86_400, 3_600, 60, 1)
_SECOND = 10**9
_FIRST_SECOND, _LAST_SECOND = -(2**63), 2**63 - 1

SHORT, INT, LONG = 16, 32, 64
"""The bits of whole numbers."""


def trim_text(text: str) -> str:
    """`String#trim`, which removes ASCII blanks and control characters only."""
    return text.strip(_BLANK)


def utf16_length(text: str) -> int:
    """`String#length`."""
    return len(text) + sum(character > _LAST_CHAR for character in text)


def parse_whole(text: str, bits: int = LONG) -> int | None:
    """`Integer#parseInt` and its relatives: an optional sign, then decimal digits of any script.

    There is no blank and no separator. Digits outside of the basic plane are two characters in Java.
    """
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not digits.isdecimal() or (not digits.isascii() and max(digits) > _LAST_CHAR):
        return None
    if len(digits) > _PLAIN_DIGITS:  # Python refuses to read thousands of digits, Java reads leading zeros
        digits = re.sub(r"\A0+(?=.)", "", "".join(str(int(digit)) for digit in digits))
        if len(digits) > len(str(2**bits)):
            return None
    number = -int(digits) if text[0] == "-" else int(digits)
    return number if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1) else None


def parse_decimal(text: str) -> float | None:
    """`Double#parseDouble`: also `1e3`, `5d`, `.5`, `NaN`, `Infinity` and hexadecimal numbers."""
    text = trim_text(text)
    if decimal := _DECIMAL.fullmatch(text):
        number, suffix = decimal.groups()
        return None if suffix and number[-1] in "Ny" else float(number)
    if hexadecimal := _HEXADECIMAL.fullmatch(text):
        try:
            return float.fromhex(hexadecimal[1])
        except OverflowError:
            return float("-inf" if text[0] == "-" else "inf")
    return None


def parse_boolean(text: str) -> bool | None:
    """Read `true` and `false` in any case."""
    for word, value in (("true", True), ("false", False)):
        if equals_ignore_case(text, word):
            return value
    return None


def equals_ignore_case(text: str, word: str) -> bool:
    """`String#equalsIgnoreCase`, which compares the characters one by one in upper case."""
    return text == word or (len(text) == len(word) and text.upper() == word.upper())


def split_list(text: str) -> list[str]:
    """Split at commas and the blanks around them, as `ConfigDef` does; an empty text has no items."""
    return _COMMA.split(text) if text else []


def is_duration(text: str) -> bool:
    """Return whether `Duration#parse` reads the text, and the duration is not negative."""
    found = _DURATION.fullmatch(text)
    if found is None or not any(found.groups()) or found[2] in {"T", "t"}:
        return False
    parts = [parse_whole(part or "0") for part in found.group(1, 3, 4, 5)]
    fraction = int((found[6] or "").ljust(9, "0"))
    nanoseconds = -fraction if (found[5] or "").startswith("-") else fraction
    for part, unit in zip(parts, _SECONDS, strict=True):
        if part is None or not _FIRST_SECOND <= part * unit <= _LAST_SECOND:
            return False
        nanoseconds += part * unit * _SECOND
    nanoseconds = -nanoseconds if text[0] == "-" else nanoseconds
    return 0 <= nanoseconds // _SECOND <= _LAST_SECOND


def may_be_class(text: str) -> bool:
    """Return whether a Java class may have the name: whether it exists is not known here."""
    return bool(text) and "/" not in text and all(text.split(".")) and not any(map(str.isspace, text))


_SMALLEST_PLAIN, _LARGEST_PLAIN = 1e-3, 1e7


def double_text(number: float) -> str:
    """Return a double as `Double#toString` does since JDK 19: `1.0`, `1.0E7`, `NaN`, `Infinity`.

    Earlier versions write more digits of some numbers: `1.9999999999999998E23` for 2e23 (JDK-4511638).
    """
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Infinity" if number > 0 else "-Infinity"
    if number == 0 or _SMALLEST_PLAIN <= abs(number) < _LARGEST_PLAIN:
        return repr(number)
    shortest = Decimal(repr(number))
    if len(shortest.normalize().as_tuple().digits) == 1:  # Java chooses from numbers with two digits, too
        shortest = Decimal(f"{number:.1e}")
    sign, (first, *rest), _ = shortest.normalize().as_tuple()
    return f"{'-' if sign else ''}{first}.{''.join(map(str, rest)) or '0'}E{shortest.adjusted()}"
