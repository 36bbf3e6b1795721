"""Errors of expressions: faults found when they are compiled, and errors of evaluation."""

from collections.abc import Iterable

import attrs


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
