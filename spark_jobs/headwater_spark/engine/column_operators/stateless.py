"""Operators without a store, and sinks, over columns."""

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from headwater.model.behaviors import Filter, MapRecord, MapValues, NonNullKeyFilter, PassThrough
from headwater_spark.engine.column_operators.rows import (
    ColumnProcess,
    NotInColumnsError,
    Rows,
    encoded_keys,
    write_column,
)
from headwater_spark.engine.columns import TopicColumns
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Value
from headwater_spark.engine.task_context import TaskContext

_PARAMETERS = ("key", "value", "timestamp", "headers")
_OF_RECORD: Final = ("topic", "partition", "offset", "timestamp", "headers", "current")
_WORD: Final = re.compile(r"\w+")
Write = Callable[[TopicColumns], None]


class FunctionOf(Protocol):
    """(text, parameters) → function of the parameters."""

    def __call__(self, text: str | None, *parameters: str) -> Callable[..., Value]: ...


def column_functions(task: TaskContext) -> FunctionOf:
    """Return the function that compiles expressions for rows in columns.

    It raises `NotInColumnsError` for an expression that reads the current input record.
    """

    def function_of(text: str | None, *parameters: str) -> Callable[..., Value]:
        if text is None:
            raise NotInColumnsError
        words = {word.lower() for word in _WORD.findall(text)}
        if words.intersection(_OF_RECORD) - set(parameters):
            raise NotInColumnsError
        return task.program.expression(text, parameters, task.current)

    return function_of


def column_sink(topic: str, serdes: tuple[Serde, Serde], write: Write) -> ColumnProcess:
    """Return the function that serializes rows and passes them to `write`."""
    key_serde, value_serde = serdes

    def process(rows: Rows) -> None:
        keys, values = encoded_keys(rows, key_serde), write_column(value_serde, rows.values)
        write(TopicColumns(topic, [(keys, values, rows.times, rows.headers)]))

    return process


def _pass_through(_behavior: PassThrough, forward: ColumnProcess, _function_of: FunctionOf) -> ColumnProcess:
    return forward


def _filter_columns(behavior: Filter, forward: ColumnProcess, function_of: FunctionOf) -> ColumnProcess:
    where, wanted = function_of(behavior.where, *_PARAMETERS), not behavior.negate

    def process(rows: Rows) -> None:
        found = map(where, rows.keys, rows.values, rows.times, rows.headers)
        forward(rows.where([each is wanted for each in found]))

    return process


def _map_values(behavior: MapValues, forward: ColumnProcess, function_of: FunctionOf) -> ColumnProcess:
    value_of = function_of(behavior.value, *_PARAMETERS)

    def process(rows: Rows) -> None:
        forward(rows.with_values(list(map(value_of, rows.keys, rows.values, rows.times, rows.headers))))

    return process


def _map_record(behavior: MapRecord, forward: ColumnProcess, function_of: FunctionOf) -> ColumnProcess:
    key_of = function_of(behavior.key, *_PARAMETERS)
    value_of = None if behavior.keeps_value else function_of(behavior.value, *_PARAMETERS)

    def process(rows: Rows) -> None:
        columns = rows.keys, rows.values, rows.times, rows.headers
        values = rows.values if value_of is None else list(map(value_of, *columns))
        forward(rows.with_keys(list(map(key_of, *columns))).with_values(values))

    return process


def _non_null_key(
    _behavior: NonNullKeyFilter, forward: ColumnProcess, _function_of: FunctionOf
) -> ColumnProcess:
    def process(rows: Rows) -> None:
        forward(rows.where([key is not None for key in rows.keys]))

    return process


STATELESS: Mapping[type, Callable[[Value, ColumnProcess, FunctionOf], ColumnProcess]] = {
    PassThrough: _pass_through,
    Filter: _filter_columns,
    MapValues: _map_values,
    MapRecord: _map_record,
    NonNullKeyFilter: _non_null_key,
}
"""Behavior → function that builds its operator: (behavior, child, function of expressions)"""
