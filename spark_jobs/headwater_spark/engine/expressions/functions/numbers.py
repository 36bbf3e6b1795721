"""Numbers, and functions over values of any type."""

import decimal
import math
from collections.abc import Callable, Mapping

from headwater_spark.engine.expressions.casts import CAST_FUNCTIONS, CASTS, to_double, to_whole
from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions.table import Function, lenient, strict
from headwater_spark.engine.expressions.operations import (
    add,
    compare,
    divide,
    in_range,
    multiply,
    negate,
    no_fit,
    positive_remainder,
    remainder,
    subtract,
)
from headwater_spark.engine.records import Value
from headwater_spark.engine.serdes.java_texts import write_utf8


def absolute(value: Value) -> Value:
    if type(value) is str:
        value = to_double(value)
    if type(value) not in {int, float}:
        no_fit("abs", value)
    return in_range(abs(value)) if type(value) is int else abs(value)


def round_function(mode: str) -> Value:
    """Round the decimal digits: `round` half away from zero, `bround` half to even."""

    def round_number(value: Value, scale: Value = 0) -> Value:
        if type(value) is str:
            value = to_double(value)
        if type(value) not in {int, float}:
            no_fit("round", value)
        digits = to_whole(scale)
        if type(value) is int and digits >= 0:
            return value
        if type(value) is float and not math.isfinite(value):
            return value
        with decimal.localcontext(prec=1000):
            unit = decimal.Decimal(1).scaleb(-max(-400, min(400, digits)))
            result = decimal.Decimal(repr(value)).quantize(unit, mode)
        return in_range(int(result)) if type(value) is int else float(result)

    return round_number


def rounding_function(operate: Callable[[float], int]) -> Value:
    """`ceil` and `floor`: a double that exceeds 64 bits becomes the nearest whole number, as in Java."""

    def evaluate(value: Value) -> Value:
        if type(value) is int:
            return value
        number = to_double(value)
        if math.isnan(number):
            return 0
        if math.isinf(number):
            return 2**63 - 1 if number > 0 else -(2**63)
        return max(-(2**63), min(2**63 - 1, operate(number)))

    return evaluate


def double_function(operate: Callable[..., float]) -> Value:
    """Return a function of doubles with NaN or an infinity where Java has them."""

    def evaluate(*values: Value) -> Value:
        numbers = [to_double(value) for value in values]
        try:
            return operate(*numbers)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return evaluate


def logarithm(operate: Callable[[float], float]) -> Value:
    """Return null where there is no result."""

    def evaluate(value: Value) -> Value:
        number = to_double(value)
        return None if number <= 0 else operate(number)

    return evaluate


def log(base_or_value: Value, value: Value = None) -> Value:
    if value is None:
        return logarithm(math.log)(base_or_value)
    base, number = to_double(base_or_value), to_double(value)
    if base <= 0 or number <= 0:
        return None
    return math.log(number) / math.log(base) if base != 1 else math.inf


def power(base: Value, exponent: Value) -> Value:
    number, by = to_double(base), to_double(exponent)
    try:
        result = math.pow(number, by)
    except ValueError:
        return math.inf if number == 0 else math.nan
    except OverflowError:
        return -math.inf if number < 0 and by % 2 == 1 else math.inf
    return result


def sign(value: Value) -> Value:
    number = to_double(value)
    return number if number != number or number == 0 else math.copysign(1.0, number)  # noqa: PLR0124


def extreme_value(wanted: int) -> Value:
    """`greatest` and `least`: ignore nulls."""

    def evaluate(*values: Value) -> Value:
        best = None
        for value in values:
            if value is not None and (best is None or compare(value, best) == wanted):
                best = value
        return best

    return evaluate


def null_on_error(operate: Callable[..., Value]) -> Value:
    """`try_…`: return null instead of an error."""

    def evaluate(*values: Value) -> Value:
        try:
            return operate(*values)
        except EvaluationError:
            return None

    return evaluate


def count_bits(value: Value) -> Value:
    number = to_whole(value)
    return (number & (2**64 - 1)).bit_count()


def shift_function(to_left: bool) -> Value:  # noqa: FBT001
    def evaluate(value: Value, by: Value) -> Value:
        number, count = to_whole(value), to_whole(by) & 63
        if not to_left:
            return number >> count
        result = (number << count) & (2**64 - 1)
        return result - 2**64 if result >> 63 else result

    return evaluate


def hexadecimal(value: Value) -> Value:
    if type(value) is int:
        return f"{value & (2**64 - 1):X}"
    data = value if type(value) is bytes else write_utf8(str(value))
    return data.hex().upper()


FUNCTIONS: Mapping[str, Function] = {
    **{name: strict(CASTS[kind], 1) for name, kind in CAST_FUNCTIONS.items()},
    "abs": strict(absolute, 1),
    "negative": strict(negate, 1),
    "positive": strict(lambda value: value, 1),
    "mod": strict(remainder, 2),
    "pmod": strict(positive_remainder, 2),
    "round": strict(round_function(decimal.ROUND_HALF_UP), 1, 2),
    "bround": strict(round_function(decimal.ROUND_HALF_EVEN), 1, 2),
    "ceil": strict(rounding_function(math.ceil), 1),
    "ceiling": strict(rounding_function(math.ceil), 1),
    "floor": strict(rounding_function(math.floor), 1),
    "sign": strict(sign, 1),
    "signum": strict(sign, 1),
    "sqrt": strict(double_function(math.sqrt), 1),
    "cbrt": strict(double_function(math.cbrt), 1),
    "exp": strict(double_function(math.exp), 1),
    "ln": strict(logarithm(math.log), 1),
    "log": strict(log, 1, 2),
    "log2": strict(logarithm(math.log2), 1),
    "log10": strict(logarithm(math.log10), 1),
    "pow": strict(power, 2),
    "power": strict(power, 2),
    "sin": strict(double_function(math.sin), 1),
    "cos": strict(double_function(math.cos), 1),
    "tan": strict(double_function(math.tan), 1),
    "asin": strict(double_function(math.asin), 1),
    "acos": strict(double_function(math.acos), 1),
    "atan": strict(double_function(math.atan), 1),
    "atan2": strict(double_function(math.atan2), 2),
    "radians": strict(double_function(math.radians), 1),
    "degrees": strict(double_function(math.degrees), 1),
    "hypot": strict(double_function(math.hypot), 2),
    "pi": strict(lambda: math.pi, 0),
    "e": strict(lambda: math.e, 0),
    "isnan": lenient(lambda value: value is not None and math.isnan(to_double(value)), 1),
    "greatest": lenient(extreme_value(1), 2, None),
    "least": lenient(extreme_value(-1), 2, None),
    "bit_count": strict(count_bits, 1),
    "shiftleft": strict(shift_function(to_left=True), 2),
    "shiftright": strict(shift_function(to_left=False), 2),
    "hex": strict(hexadecimal, 1),
    "try_add": strict(null_on_error(add), 2),
    "try_subtract": strict(null_on_error(subtract), 2),
    "try_multiply": strict(null_on_error(multiply), 2),
    "try_divide": strict(null_on_error(divide), 2),
    "try_mod": strict(null_on_error(remainder), 2),
}
