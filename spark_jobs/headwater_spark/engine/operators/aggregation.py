"""The functions of an aggregation, for operators of streams and of tables."""

from collections.abc import Callable

import attrs

from headwater.model.behaviors import Aggregation, AggregationKind
from headwater_spark.engine.operators.interface import NotRunnableError, OperatorContext
from headwater_spark.engine.records import Value


@attrs.frozen
class Functions:
    """`init()`, `add(key, value, total)`, `remove(key, value, total)`, `merge(key, left, right)`.

    The `init` of a reduction returns None, and its `add` returns the value if the total is None.
    `add_again` is `add` for a total that is not None.
    """

    init: Callable[[], Value]
    add: Callable[[Value, Value, Value], Value]
    remove: Callable[[Value, Value, Value], Value]
    merge: Callable[[Value, Value, Value], Value]
    add_again: Callable[[Value, Value, Value], Value]


def functions_of(aggregation: Aggregation, context: OperatorContext) -> Functions:
    """Return the functions. Raises NotRunnableError if the document has no expressions for them."""
    match aggregation.kind:
        case AggregationKind.COUNT:
            return _COUNT
        case AggregationKind.REDUCE:
            return _reduction(aggregation, context)
        case AggregationKind.AGGREGATE:
            return _aggregate(aggregation, context)


_COUNT = Functions(
    init=lambda: 0,
    add=lambda _key, _value, total: total + 1,
    remove=lambda _key, _value, total: total - 1,
    merge=lambda _key, left, right: left + right,
    add_again=lambda _key, _value, total: total + 1,
)


def _reduction(aggregation: Aggregation, context: OperatorContext) -> Functions:
    reduce = context.expression(aggregation.add, "key", "value", "total")

    def add(key: Value, value: Value, total: Value) -> Value:
        return value if total is None else reduce(key, value, total)

    return Functions(
        init=lambda: None,
        add=add,
        remove=_optional(aggregation.remove, context, "remove", "key", "value", "total"),
        merge=lambda key, left, right: add(key, right, left),
        add_again=reduce,
    )


def _aggregate(aggregation: Aggregation, context: OperatorContext) -> Functions:
    add = context.expression(aggregation.add, "key", "value", "total")
    return Functions(
        init=context.expression(aggregation.init),
        add=add,
        add_again=add,
        remove=_optional(aggregation.remove, context, "remove", "key", "value", "total"),
        merge=_optional(aggregation.merge, context, "merge", "key", "left", "right"),
    )


def _optional(
    text: str | None, context: OperatorContext, what: str, *parameters: str
) -> Callable[..., Value]:
    """Return a function that raises when called without an expression: only some operators call it."""
    if text is not None:
        return context.expression(text, *parameters)

    def missing(*_: Value) -> Value:
        raise NotRunnableError(f"{context.node.name} has no expression for `{what}`")

    return missing
