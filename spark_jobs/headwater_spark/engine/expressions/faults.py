"""Errors of expressions, and the limits that keep hostile expressions from exhausting a process.

Faults are found when expressions are compiled. Limits are far above what real expressions need.
"""

from collections.abc import Iterable

import attrs

_TYPES = {
    "str": "STRING",
    "int": "BIGINT",
    "float": "DOUBLE",
    "bool": "BOOLEAN",
    "bytes": "BINARY",
    "dict": "STRUCT",
    "list": "ARRAY",
    "date": "DATE",
    "datetime": "TIMESTAMP",
    "NoneType": "VOID",
}
LONGEST_TEXT = 20_000
"""Characters of an expression."""
MOST_NODES = 5_000
DEEPEST = 60
MOST_STEPS = 100
"""Steps of the parser for each token. It tries types first: `struct(struct(…` takes exponential time."""
MOST_DIGITS = 400
"""Digits of a number; a double has at most 309 before the point."""
LONGEST_RESULT = 10_000_000
"""Characters of a string that a function returns."""
MOST_ELEMENTS = 1_000_000
"""Elements of an array that a function returns."""


@attrs.frozen
class Fault:
    """A part of an expression that cannot be compiled; `line` and `column` in its text start at 1."""

    summary: str
    found: str
    expected: str = "Spark SQL that the runtime supports"
    fix: str = "Use other functions or operators, or a processor."
    line: int = 1
    column: int = 1


class ExpressionError(ValueError):
    """An expression cannot be compiled, because of these faults."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.summary}: {fault.found}" for fault in self.faults))


class EvaluationError(ValueError):
    """Spark fails on this record. The text names the fault and types, not the content of the record."""


def type_name(value: object) -> str:
    """Return Spark's name for the type of a value."""
    return _TYPES.get(type(value).__name__, type(value).__name__)


def check_characters(number: int, function: str) -> None:
    """Raise EvaluationError if `function` would return a string of more than `LONGEST_RESULT` characters."""
    if number > LONGEST_RESULT:
        raise EvaluationError(f"the result of `{function}` exceeds {LONGEST_RESULT} characters")


def check_elements(number: int, function: str) -> None:
    """Raise EvaluationError if `function` would return an array of more than `MOST_ELEMENTS` elements."""
    if number > MOST_ELEMENTS:
        raise EvaluationError(f"the result of `{function}` exceeds {MOST_ELEMENTS} elements")
