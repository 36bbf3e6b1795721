"""Expressions that are evaluated for rows in columns: they must not read the current input record."""

import re
from collections.abc import Callable
from typing import Final, Protocol

from headwater_spark.engine.column_operators.rows import NotInColumnsError
from headwater_spark.engine.operators.interface import TaskServices
from headwater_spark.engine.records import Value

_OF_RECORD: Final = ("topic", "partition", "offset", "timestamp", "headers", "current")
_WORD: Final = re.compile(r"\w+")


class FunctionOf(Protocol):
    """(text, parameters) → function of the parameters."""

    def __call__(self, text: str | None, *parameters: str) -> Callable[..., Value]: ...


def column_functions(task: TaskServices) -> FunctionOf:
    """Return what compiles expressions; it raises `NotInColumnsError` for one that needs its record."""

    def function_of(text: str | None, *parameters: str) -> Callable[..., Value]:
        if text is None:
            raise NotInColumnsError
        words = {word.lower() for word in _WORD.findall(text)}
        if words.intersection(_OF_RECORD) - set(parameters):
            raise NotInColumnsError
        return task.program.expression(text, parameters, task.current)

    return function_of
