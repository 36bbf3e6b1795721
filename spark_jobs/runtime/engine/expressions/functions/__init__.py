"""Functions by name: one table a family, `FUNCTIONS` is all of them.

Functions with lambdas, with aliases or with arguments that are not always evaluated are forms of the language
and stand in `forms`.
"""

from collections.abc import Mapping

from spark_jobs.runtime.engine.expressions.functions import (
    arrays,
    hashes,
    json_texts,
    numbers,
    strings,
    times,
)
from spark_jobs.runtime.engine.expressions.functions.table import Function

FUNCTIONS: Mapping[str, Function] = {
    **strings.FUNCTIONS,
    **numbers.FUNCTIONS,
    **arrays.FUNCTIONS,
    **times.FUNCTIONS,
    **hashes.FUNCTIONS,
    **json_texts.FUNCTIONS,
}


def function_names() -> tuple[str, ...]:
    """All of them, for the documentation."""
    return tuple(sorted(FUNCTIONS))
