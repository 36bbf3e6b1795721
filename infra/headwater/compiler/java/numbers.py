"""Texts of numbers as Java writes them."""

import math
from decimal import Decimal

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
