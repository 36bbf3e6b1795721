"""Arithmetic, comparison and logic of values of any type (Spark, ANSI mode).

All take and return null as None. Strings meet numbers as Spark coerces them: compared or calculated with a
whole number a string is read as BIGINT, with a fractional one as DOUBLE.
"""

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import NoReturn

from headwater_spark.engine.expressions.faults import EvaluationError, type_name
from headwater_spark.engine.records import Value, Windowed

LONG_MAX = 2**63 - 1
LONG_MIN = -(2**63)


def no_fit(what: str, *values: object) -> NoReturn:
    raise EvaluationError(f"{what} does not accept {' and '.join(map(type_name, values))}")


def text_to_whole(text: str) -> int:
    trimmed = text.strip(_BLANKS)
    digits = trimmed[1:] if trimmed[:1] in {"+", "-"} else trimmed
    if not (digits.isascii() and digits.isdigit()):
        raise EvaluationError("a STRING is not a valid BIGINT")
    digits = digits.lstrip("0")[:_LONGEST_WHOLE] or "0"
    return in_range(-int(digits) if trimmed[0] == "-" else int(digits))


def text_to_double(text: str) -> float:
    trimmed = text.strip(_BLANKS)
    special = _SPECIAL.get(trimmed.lower())
    if special is not None:
        return special
    if trimmed[-1:] in {"d", "D", "f", "F"}:
        trimmed = trimmed[:-1]
    if "_" in trimmed or not trimmed.isascii() or trimmed[-1:].isalpha():
        raise EvaluationError("a STRING is not a valid DOUBLE")
    try:
        return float(trimmed)
    except ValueError:
        raise EvaluationError("a STRING is not a valid DOUBLE") from None


_LONGEST_WHOLE = 20
"""More digits than a BIGINT has; Python reads no number of thousands of digits."""
_BLANKS = "".join(map(chr, range(33)))
_SPECIAL = {
    "nan": math.nan,
    "inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf,
}  # fmt: skip


def in_range(number: int) -> int:
    if LONG_MIN <= number <= LONG_MAX:
        return number
    raise EvaluationError("a whole number exceeds 64 bits (BIGINT overflow)")


def _numbers(left: Value, right: Value, what: str) -> tuple[Value, Value]:
    """Return both as numbers: a string is converted to the type of the other side, two strings to doubles."""
    kinds = type(left), type(right)
    if str in kinds:
        wants_whole = int in kinds
        read = text_to_whole if wants_whole else text_to_double
        if kinds[0] is str:
            left = read(left)
        if kinds[1] is str:
            right = read(right)
    if type(left) not in _NUMERIC or type(right) not in _NUMERIC:
        no_fit(what, left, right)
    return left, right


_NUMERIC = frozenset({int, float})


def add(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return in_range(left + right)
    if left is None or right is None:
        return None
    if isinstance(right, timedelta) or isinstance(left, timedelta):
        return _shifted(left, right)
    left, right = _numbers(left, right, "+")
    return _bounded(left + right)


def subtract(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return in_range(left - right)
    if left is None or right is None:
        return None
    if isinstance(right, timedelta):
        return _shifted(left, -right)
    left, right = _numbers(left, right, "-")
    return _bounded(left - right)


def multiply(left: Value, right: Value) -> Value:
    if type(left) is int and type(right) is int:
        return in_range(left * right)
    if left is None or right is None:
        return None
    left, right = _numbers(left, right, "*")
    return _bounded(left * right)


def _bounded(result: Value) -> Value:
    return in_range(result) if type(result) is int else result


def _shifted(moment: Value, by: Value) -> Value:
    if isinstance(moment, timedelta):
        moment, by = by, moment
    if not isinstance(moment, date) or not isinstance(by, timedelta):
        no_fit("+", moment, by)
    if not isinstance(moment, datetime) and by % timedelta(days=1):
        moment = datetime(moment.year, moment.month, moment.day, tzinfo=UTC)
    return moment + by


def divide(left: Value, right: Value) -> Value:
    """Return a double: fractional literals are doubles, and Spark divides whole numbers as doubles."""
    if left is None or right is None:
        return None
    if type(left) is str:
        left = text_to_double(left)
    if type(right) is str:
        right = text_to_double(right)
    if type(left) not in _NUMERIC or type(right) not in _NUMERIC:
        no_fit("/", left, right)
    if right == 0:
        raise EvaluationError("division by zero")
    return float(left) / float(right)


def whole_divide(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    left, right = _numbers(left, right, "div")
    if right == 0:
        raise EvaluationError("division by zero")
    if type(left) is int and type(right) is int:
        quotient = abs(left) // abs(right)
        return in_range(quotient if (left < 0) == (right < 0) else -quotient)
    return no_fit("div", left, right)


def remainder(left: Value, right: Value) -> Value:
    """Return the remainder with the sign of the dividend, as in Java."""
    if left is None or right is None:
        return None
    left, right = _numbers(left, right, "%")
    if right == 0:
        raise EvaluationError("division by zero")
    if type(left) is int and type(right) is int:
        rest = abs(left) % abs(right)
        return -rest if left < 0 else rest
    if math.isinf(left) or math.isnan(left) or math.isnan(right):
        return math.nan
    return math.fmod(left, right)


def positive_remainder(left: Value, right: Value) -> Value:
    rest = remainder(left, right)
    if rest is None:
        return None
    left, right = _numbers(left, right, "pmod")
    return remainder(rest + right, right) if rest < 0 else rest


def negate(value: Value) -> Value:
    if value is None:
        return None
    if type(value) is str:
        value = text_to_double(value)
    if type(value) not in _NUMERIC:
        no_fit("-", value)
    return _bounded(-value)


def bit_operation(name: str, operate: Callable[[int, int], int]) -> Callable[[Value, Value], Value]:
    def evaluate(left: Value, right: Value) -> Value:
        if left is None or right is None:
            return None
        if type(left) is not int or type(right) is not int:
            no_fit(name, left, right)
        return operate(left, right)

    return evaluate


bit_and = bit_operation("&", lambda left, right: left & right)
bit_or = bit_operation("|", lambda left, right: left | right)
bit_xor = bit_operation("^", lambda left, right: left ^ right)


def bit_not(value: Value) -> Value:
    if value is None:
        return None
    return ~value if type(value) is int else no_fit("~", value)


# comparison


def compare(left: Value, right: Value) -> int:
    """Return -1, 0 or 1 for values that are not null; NaN equals NaN and is the largest number."""
    left, right = _comparable(left, right)
    if type(left) is float or type(right) is float:
        return _compare_numbers(left, right)
    if type(left) is list:
        return _compare_sequences(left, right)
    if type(left) is dict:
        return _compare_objects(left, right)
    return int(left > right) - int(left < right)


def _compare_numbers(left: Value, right: Value) -> int:
    if left != left or right != right:  # noqa: PLR0124 - NaN
        return int(left != left) - int(right != right)  # noqa: PLR0124
    return int(left > right) - int(left < right)


def _compare_sequences(left: Value, right: Value) -> int:
    for one, other in zip(left, right, strict=False):
        result = compare_members(one, other)
        if result:
            return result
    return (len(left) > len(right)) - (len(left) < len(right))


def compare_members(one: Value, other: Value) -> int:
    """Compare members of arrays and objects: null is the smallest."""
    if one is None or other is None:
        return int(other is None) - int(one is None)
    return compare(one, other)


def _compare_objects(left: Value, right: Value) -> int:
    if list(left) != list(right):
        raise EvaluationError("STRUCTs with different fields cannot be compared")
    return _compare_sequences(list(left.values()), list(right.values()))


def _comparable(left: Value, right: Value) -> tuple[Value, Value]:
    kinds = type(left), type(right)
    if kinds[0] is kinds[1] or (kinds[0] in _NUMERIC and kinds[1] in _NUMERIC):
        return left, right
    if str in kinds:
        text_left = kinds[0] is str
        other = right if text_left else left
        read = _READS.get(type(other))
        if read is not None:
            return (read(left), right) if text_left else (left, read(right))
    if isinstance(left, date) and isinstance(right, date):
        return _moment(left), _moment(right)
    return no_fit("comparison", left, right)


def _moment(value: date) -> datetime:
    return value if isinstance(value, datetime) else datetime(value.year, value.month, value.day, tzinfo=UTC)


def text_to_boolean(text: str) -> bool:
    word = text.strip(_BLANKS).lower()
    if word in {"t", "true", "y", "yes", "1"}:
        return True
    if word in {"f", "false", "n", "no", "0"}:
        return False
    raise EvaluationError("a STRING is not a valid BOOLEAN")


_READS: dict[type, Callable[[str], Value]] = {
    int: text_to_whole,
    float: text_to_double,
    bool: text_to_boolean,
    bytes: str.encode,
}


def equal(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    return compare(left, right) == 0


def not_equal(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    return compare(left, right) != 0


def less(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    return compare(left, right) < 0


def less_or_equal(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    return compare(left, right) <= 0


def greater(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    return compare(left, right) > 0


def greater_or_equal(left: Value, right: Value) -> Value:
    if left is None or right is None:
        return None
    return compare(left, right) >= 0


def same(left: Value, right: Value) -> bool:
    """`<=>`: null equals null."""
    if left is None or right is None:
        return left is right
    return compare(left, right) == 0


# logic


def truth(value: Value) -> Value:
    """Return the value of a condition: True, False or None."""
    if value is True or value is False or value is None:
        return value
    if type(value) is str:
        return text_to_boolean(value)
    return no_fit("a condition", value)


def both(left: Value, right: Value) -> Value:
    if left is False or right is False:
        return False
    return None if left is None or right is None else True


def either(left: Value, right: Value) -> Value:
    if left is True or right is True:
        return True
    return None if left is None or right is None else False


# access


def field(value: Value, name: str) -> Value:
    """`value.name`, if `value` is not a `dict`."""
    if value is None:
        return None
    if isinstance(value, dict):
        return value.get(name)
    if isinstance(value, Windowed) and name in Windowed._fields:
        return getattr(value, name)
    if isinstance(value, list):
        return [field(each, name) for each in value]
    return no_fit(f"a field ({name})", value)


def item(value: Value, at: Value) -> Value:
    """`value[at]`: the element of an array, from 0, or the field of an object."""
    if value is None or at is None:
        return None
    if type(value) is dict:
        return value.get(at if type(at) is str else str(at))
    if type(value) is list and type(at) is int:
        if 0 <= at < len(value):
            return value[at]
        raise EvaluationError("an index is out of range of its ARRAY")
    if isinstance(value, Windowed) and type(at) is str:
        return field(value, at)
    return no_fit("[ ]", value, at)
