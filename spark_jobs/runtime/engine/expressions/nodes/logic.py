"""What is true, false or null: three-valued logic."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from spark_jobs.runtime.engine.expressions import operations as op
from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting
from spark_jobs.runtime.engine.expressions.source import constant, is_literal, null_test
from spark_jobs.runtime.engine.records import Value


def _not(generator: Emitting, node: exp.Not) -> str:
    if isinstance(node.this, exp.Is):
        return _is(generator, node.this, is_not=True)
    return negated(generator, generator.condition(node.this))


def negated(generator: Emitting, value: str) -> str:
    if is_literal(value) or value == "None":
        return {"True": "False", "False": "True"}.get(value, "None")
    return generator.source.assign(f"None if {value} is None else not {value}")


def _logic(decided: str, combine: Callable[..., Value]) -> Emitter:
    """The right side is not evaluated where the left one decides."""

    def emit(generator: Emitting, node: exp.Binary) -> str:
        left = generator.condition(node.left)
        result = generator.source.assign(left)
        with generator.source.block(f"if {result} is not {decided}:"):
            right = generator.condition(node.right)
            called = generator.source.object(combine, "g")
            generator.source.line(f"{result} = {called}({result}, {right})")
        return result

    return emit


def _is(generator: Emitting, node: exp.Is, *, is_not: bool = False) -> str:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        test = null_test(generator.value(node.this), negated=is_not)
    elif isinstance(wanted, exp.Boolean):
        truth = constant(bool(wanted.this))
        test = f"{generator.condition(node.this)} is {'not ' if is_not else ''}{truth}"
    else:
        return generator.fault(node, "`is` of something else", "NULL, TRUE or FALSE")
    return generator.source.assign(test)


def _in(generator: Emitting, node: exp.In) -> str:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        return generator.fault(node, "a subquery", "a list of values")
    wanted = generator.value(node.this)
    members = [generator.value(each) for each in node.expressions]
    return generator.call(is_member, wanted, f"({', '.join(members)},)")


def is_member(value: Value, members: tuple[Value, ...]) -> Value:
    """`in`: null if it is not found and a null might have been it."""
    if value is None:
        return None
    for member in members:
        if member is not None and op.compare(value, member) == 0:
            return True
    return None if None in members else False


def _between(generator: Emitting, node: exp.Between) -> str:
    value = generator.value(node.this)
    low, high = generator.value(node.args["low"]), generator.value(node.args["high"])
    above = generator.call(op.greater_or_equal, value, low)
    below = generator.call(op.less_or_equal, value, high)
    return generator.call(op.both, above, below)


LOGIC: Mapping[type, Emitter] = {
    exp.And: _logic("False", op.both),
    exp.Or: _logic("True", op.either),
    exp.Not: _not,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
}
