"""The functions by name, one table per family.

Functions with lambdas, aliases or arguments that are not always evaluated are in `forms`.
"""

from collections.abc import Mapping

from headwater_spark.engine.expressions.functions import arrays, encodings, numbers, strings, times
from headwater_spark.engine.expressions.functions.table import Function

FUNCTIONS: Mapping[str, Function] = {
    **strings.FUNCTIONS,
    **numbers.FUNCTIONS,
    **arrays.FUNCTIONS,
    **times.FUNCTIONS,
    **encodings.FUNCTIONS,
}


def function_names() -> tuple[str, ...]:
    """Return the names of all functions, for the documentation."""
    return tuple(sorted(FUNCTIONS))
