"""Operators: arithmetic, comparisons, three-valued logic, patterns, `case` and `if`."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from headwater_spark.engine.expressions import operations as op
from headwater_spark.engine.expressions.faults import EvaluationError
from headwater_spark.engine.expressions.functions import FUNCTIONS
from headwater_spark.engine.expressions.functions.strings import (
    compile_pattern,
    ilike,
    like,
    like_pattern,
    rlike,
)
from headwater_spark.engine.expressions.source import CodeGenerator, Emitter, constant, is_literal, null_test
from headwater_spark.engine.records import Value

_COMPARED_INLINE = frozenset((int, str))
"""Python compares values of these types as Spark does, if both have the same one."""


def _binary(operation: Callable[..., Value]) -> Emitter:
    def emit(generator: CodeGenerator, node: exp.Binary) -> str:
        left, right = generator.value(node.left), generator.value(node.right)
        return generator.call(operation, left, right)

    return emit


def _comparison(operation: Callable[..., Value], symbol: str) -> Emitter:
    """Compare whole numbers and strings inline."""

    def emit(generator: CodeGenerator, node: exp.Binary) -> str:
        left, right = generator.value(node.left), generator.value(node.right)
        tests = [_frequent(each, left, right) for each in (left, right)]
        called = generator.source.object(operation, "g")
        wanted = [test for test in dict.fromkeys(tests) if test]
        slow = f"{called}({left}, {right})"
        if None in tests or not wanted:
            return generator.source.assign(slow)
        if not is_literal(left) and not is_literal(right):
            kinds = generator.source.object(_COMPARED_INLINE)
            wanted = [f"type({left}) is type({right}) and type({left}) in {kinds}"]
        return generator.source.assign(f"{left} {symbol} {right} if {' and '.join(wanted)} else {slow}")

    return emit


def _frequent(name: str, left: str, right: str) -> str | None:
    """Return the test for a comparison by Python's operator; "" = always, None = never."""
    kind = "str" if left[0] in "'\"" or right[0] in "'\"" else "int"
    if name in {"None", "True", "False"}:
        return None
    if is_literal(name):
        is_text = name[0] in "'\""
        if is_text != (kind == "str") or (not is_text and not name.lstrip("-").isdigit()):
            return None
        return ""
    return f"type({name}) is {kind}"


def _negation(generator: CodeGenerator, node: exp.Neg) -> str:
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


def _not(generator: CodeGenerator, node: exp.Not) -> str:
    if isinstance(node.this, exp.Is):
        return _is(generator, node.this, is_not=True)
    return negated(generator, generator.condition(node.this))


def negated(generator: CodeGenerator, value: str) -> str:
    if is_literal(value) or value == "None":
        return {"True": "False", "False": "True"}.get(value, "None")
    return generator.source.assign(f"None if {value} is None else not {value}")


def _logic(decided: str, combine: Callable[..., Value]) -> Emitter:
    """Evaluate the right side only if the left side does not decide."""

    def emit(generator: CodeGenerator, node: exp.Binary) -> str:
        left = generator.condition(node.left)
        result = generator.source.assign(left)
        with generator.source.block(f"if {result} is not {decided}:"):
            right = generator.condition(node.right)
            called = generator.source.object(combine, "g")
            generator.source.line(f"{result} = {called}({result}, {right})")
        return result

    return emit


def _is(generator: CodeGenerator, node: exp.Is, *, is_not: bool = False) -> str:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        test = null_test(generator.value(node.this), negated=is_not)
    elif isinstance(wanted, exp.Boolean):
        truth = constant(bool(wanted.this))
        test = f"{generator.condition(node.this)} is {'not ' if is_not else ''}{truth}"
    else:
        return generator.fault(node, "`is` has an unsupported operand", "NULL, TRUE or FALSE")
    return generator.source.assign(test)


def _in(generator: CodeGenerator, node: exp.In) -> str:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        return generator.fault(node, "a subquery is not supported", "a list of values")
    wanted = generator.value(node.this)
    members = [generator.value(each) for each in node.expressions]
    return generator.call(is_member, wanted, f"({', '.join(members)},)")


def is_member(value: Value, members: tuple[Value, ...]) -> Value:
    """`in`: null if the value is not found and a member is null."""
    if value is None:
        return None
    for member in members:
        if member is not None and op.compare(value, member) == 0:
            return True
    return None if None in members else False


def _between(generator: CodeGenerator, node: exp.Between) -> str:
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


def _matching(function: Callable[..., Value], check: Callable[..., Value]) -> Emitter:
    """Match a pattern; check constant patterns when compiling."""

    def emit(generator: CodeGenerator, node: exp.Expr, escape: str = "") -> str:
        searched = node.expression
        if isinstance(searched, exp.Literal) and searched.is_string:
            try:
                check(str(searched.this), *([escape] if escape else []))
            except EvaluationError as error:
                return generator.fault(searched, str(error), "a valid pattern", "Correct the pattern.")
        arguments = [generator.value(node.this), generator.value(searched)]
        found = generator.call(function, *arguments, *([constant(escape)] if escape else []), strict=True)
        return negated(generator, found) if node.args.get("negate") else found

    return emit


_like, _ilike, _rlike = (
    _matching(like, like_pattern),
    _matching(ilike, like_pattern),
    _matching(rlike, compile_pattern),
)


def _escape(generator: CodeGenerator, node: exp.Escape) -> str:
    character = node.expression.name
    if len(character) != 1 or not isinstance(node.this, exp.Like | exp.ILike):
        return generator.fault(node, "an escape has an unknown form", "LIKE … ESCAPE 'c'")
    emit: Value = _like if isinstance(node.this, exp.Like) else _ilike
    result: str = emit(generator, node.this, character)
    return result


PATTERNS: Mapping[type, Emitter] = {
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.RegexpLike: _rlike,
    exp.Escape: _escape,
}


def _case(generator: CodeGenerator, node: exp.Case) -> str:
    subject = generator.value(node.this) if node.this is not None else None
    result = generator.source.assign("None")
    _choices(generator, result, subject, node.args["ifs"], node.args.get("default"))
    return result


def _if(generator: CodeGenerator, node: exp.If) -> str:
    result = generator.source.assign("None")
    _choices(generator, result, None, [node], node.args.get("false"))
    return result


def _choices(
    generator: CodeGenerator,
    result: str,
    subject: str | None,
    branches: list[exp.If],
    default: exp.Expr | None,
) -> None:
    source = generator.source
    if not branches:
        if default is not None:
            source.line(f"{result} = {generator.value(default)}")
        return
    first, rest = branches[0], branches[1:]
    if subject is None:
        chosen = generator.condition(first.this)
    else:
        chosen = generator.call(op.equal, subject, generator.value(first.this))
    with source.block(f"if {chosen} is True:"):
        source.line(f"{result} = {generator.value(first.args['true'])}")
    if rest or default is not None:
        with source.block("else:"):
            _choices(generator, result, subject, rest, default)


CHOICES: Mapping[type, Emitter] = {
    exp.Case: _case,
    exp.If: _if,
}
