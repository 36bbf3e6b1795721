"""Stateless operators of streams. They forward the headers that they receive."""

from collections.abc import Callable, Mapping

from headwater.model.behaviors import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
    Peek,
    TableToStream,
)
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.records import Headers, Value

_PARAMETERS = ("key", "value", "timestamp", "headers")


def pass_through(behavior: PassThrough, context: OperatorContext) -> Process:
    del behavior
    return context.forward


def filter_records(behavior: Filter, context: OperatorContext) -> Process:
    """`filter` and `filterNot`: a predicate that is null drops the record in both."""
    where = context.expression(behavior.where, *_PARAMETERS)
    wanted = not behavior.negate
    forward = context.forward

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if where(key, value, timestamp, headers) is wanted:
            forward(key, value, timestamp, headers)

    return process


def map_record(behavior: MapRecord, context: OperatorContext) -> Process:
    """`map` and `selectKey`."""
    forward = context.forward
    new_key = context.expression(behavior.key, *_PARAMETERS)
    if behavior.keeps_value:

        def select_key(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
            forward(new_key(key, value, timestamp, headers), value, timestamp, headers)

        return select_key

    new_value = context.expression(behavior.value, *_PARAMETERS)

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        forward(
            new_key(key, value, timestamp, headers),
            new_value(key, value, timestamp, headers),
            timestamp,
            headers,
        )

    return process


def map_values(behavior: MapValues, context: OperatorContext) -> Process:
    new_value = context.expression(behavior.value, *_PARAMETERS)
    forward = context.forward

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        forward(key, new_value(key, value, timestamp, headers), timestamp, headers)

    return process


def flat_map(behavior: FlatMap, context: OperatorContext) -> Process:
    each = context.expression(behavior.each, *_PARAMETERS)
    forward = context.forward

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        for pair in each(key, value, timestamp, headers) or ():
            forward(pair["key"], pair["value"], timestamp, headers)

    return process


def flat_map_values(behavior: FlatMapValues, context: OperatorContext) -> Process:
    each = context.expression(behavior.each, *_PARAMETERS)
    forward = context.forward

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        for item in each(key, value, timestamp, headers) or ():
            forward(key, item, timestamp, headers)

    return process


def peek(behavior: Peek, context: OperatorContext) -> Process:
    """`peek` and `print` log the result of `each`; without `each`, `print` logs key and value."""
    log = _log_record(behavior, context)
    if behavior.kind != "peek":
        return log
    forward = context.forward

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        log(key, value, timestamp, headers)
        forward(key, value, timestamp, headers)

    return process


def _log_record(behavior: Peek, context: OperatorContext) -> Process:
    log = context.task.logger(context.node.name)
    if behavior.each is not None:
        each = context.expression(behavior.each, *_PARAMETERS)
        return lambda *record: log(behavior.kind, value=each(*record))
    if behavior.kind == "print":
        return lambda key, value, timestamp, headers: log("print", key=key, value=value)  # noqa: ARG005
    return lambda *_: None


def branch(behavior: Branch, context: OperatorContext) -> Process:
    """Forward to the child of the first predicate that is true, else to the default child, if any."""
    predicates = tuple(context.expression(where, *_PARAMETERS) for where in behavior.predicates)
    cases: tuple[tuple[Callable[..., Value], Process], ...] = tuple(
        zip(predicates, (context.children[name] for name in behavior.children), strict=True)
    )
    otherwise = context.children[behavior.default] if behavior.default is not None else None

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        for holds, child in cases:
            if holds(key, value, timestamp, headers) is True:
                child(key, value, timestamp, headers)
                return
        if otherwise is not None:
            otherwise(key, value, timestamp, headers)

    return process


def non_null_key(behavior: NonNullKeyFilter, context: OperatorContext) -> Process:
    del behavior
    forward = context.forward

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        if key is not None:
            forward(key, value, timestamp, headers)

    return process


def table_to_stream(behavior: TableToStream, context: OperatorContext) -> Process:
    del behavior
    forward = context.forward

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        forward(key, change[0], timestamp, headers)

    return process


FACTORIES: Mapping[type, OperatorFactory] = {
    PassThrough: pass_through,
    Filter: filter_records,
    MapRecord: map_record,
    MapValues: map_values,
    FlatMap: flat_map,
    FlatMapValues: flat_map_values,
    Peek: peek,
    Branch: branch,
    NonNullKeyFilter: non_null_key,
    TableToStream: table_to_stream,
}
