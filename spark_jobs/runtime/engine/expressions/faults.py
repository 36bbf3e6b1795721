"""What is wrong with an expression, before it runs and while it runs."""

from collections.abc import Iterable

import attrs


@attrs.frozen
class Fault:
    """One thing that cannot be compiled; `line` and `column` count from 1 within the expression's text."""

    summary: str
    found: str
    expected: str = "Spark SQL that the runtime evaluates"
    fix: str = "Say it by other means, or do the work in a processor."
    line: int = 1
    column: int = 1


class ExpressionError(ValueError):
    """An expression that cannot be compiled, with everything that is wrong with it."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(f"{fault.summary}: {fault.found}" for fault in self.faults))


class EvaluationError(ValueError):
    """Spark would fail on this record. The text names the fault and types, never the record's content."""


def type_name(value: object) -> str:
    """A value's type as Spark calls it."""
    return _TYPES.get(type(value).__name__, type(value).__name__)


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
