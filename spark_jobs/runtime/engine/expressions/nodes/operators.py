"""Arithmetic, bits and comparisons."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from spark_jobs.runtime.engine.expressions import operations as op
from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting
from spark_jobs.runtime.engine.expressions.functions import FUNCTIONS
from spark_jobs.runtime.engine.expressions.source import is_literal
from spark_jobs.runtime.engine.records import Value


def _binary(operation: Callable[..., Value]) -> Emitter:
    def emit(generator: Emitting, node: exp.Binary) -> str:
        left, right = generator.value(node.left), generator.value(node.right)
        return generator.call(operation, left, right)

    return emit


def _comparison(operation: Callable[..., Value], symbol: str) -> Emitter:
    """Whole numbers are compared in place, and strings with a constant."""

    def emit(generator: Emitting, node: exp.Binary) -> str:
        left, right = generator.value(node.left), generator.value(node.right)
        tests = [_frequent(each, left, right) for each in (left, right)]
        called = generator.source.object(operation, "g")
        wanted = [test for test in dict.fromkeys(tests) if test]
        slow = f"{called}({left}, {right})"
        if None in tests or not wanted:
            return generator.source.assign(slow)
        return generator.source.assign(f"{left} {symbol} {right} if {' and '.join(wanted)} else {slow}")

    return emit


def _frequent(name: str, left: str, right: str) -> str | None:
    """The test under which a comparison of two operands is Python's; "" = holds anyway, None = never."""
    kind = "str" if left[0] in "'\"" or right[0] in "'\"" else "int"
    if name in {"None", "True", "False"}:
        return None
    if is_literal(name):
        is_text = name[0] in "'\""
        if is_text != (kind == "str") or (not is_text and not name.lstrip("-").isdigit()):
            return None
        return ""
    return f"type({name}) is {kind}"


def _negation(generator: Emitting, node: exp.Neg) -> str:
    value = generator.value(node.this)
    if value.isdigit():
        return f"-{value}"
    return generator.call(op.negate, value)


OPERATORS: Mapping[type, Emitter] = {
    exp.Add: _binary(op.add),
    exp.Sub: _binary(op.subtract),
    exp.Mul: _binary(op.multiply),
    exp.Div: _binary(op.divide),
    exp.IntDiv: _binary(op.whole_divide),
    exp.Mod: _binary(op.remainder),
    exp.Neg: _negation,
    exp.BitwiseAnd: _binary(op.bit_and),
    exp.BitwiseOr: _binary(op.bit_or),
    exp.BitwiseXor: _binary(op.bit_xor),
    exp.BitwiseNot: lambda generator, node: generator.call(op.bit_not, generator.value(node.this)),
    exp.DPipe: lambda generator, node: generator.call(
        FUNCTIONS["concat"].evaluate, generator.value(node.left), generator.value(node.right), strict=True
    ),
    exp.EQ: _comparison(op.equal, "=="),
    exp.NEQ: _comparison(op.not_equal, "!="),
    exp.GT: _comparison(op.greater, ">"),
    exp.GTE: _comparison(op.greater_or_equal, ">="),
    exp.LT: _comparison(op.less, "<"),
    exp.LTE: _comparison(op.less_or_equal, "<="),
    exp.NullSafeEQ: _binary(op.same),
    exp.NullSafeNEQ: _binary(lambda left, right: not op.same(left, right)),
}
