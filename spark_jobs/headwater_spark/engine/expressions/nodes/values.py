"""Constants, names, fields, casts, arrays and function calls."""

from collections.abc import Mapping
from datetime import timedelta

from sqlglot import exp

from headwater_spark.engine.expressions import operations as op
from headwater_spark.engine.expressions.casts import CASTS
from headwater_spark.engine.expressions.forms import FORMS
from headwater_spark.engine.expressions.functions import FUNCTIONS
from headwater_spark.engine.expressions.functions.numbers import null_on_error
from headwater_spark.engine.expressions.source import CodeGenerator, Emitter, constant, is_literal


def _literal(generator: CodeGenerator, node: exp.Literal) -> str:
    text = str(node.this)
    if node.is_string:
        return constant(text)
    if text.isdigit():
        number = int(text)
        if number > op.LONG_MAX + 1:
            return generator.fault(node, "a whole number exceeds 64 bits", "a BIGINT")
        return constant(number)
    try:
        return constant(float(text))
    except ValueError:
        return generator.fault(node, "a number has an unknown form")


def _null(_generator: CodeGenerator, _node: exp.Null) -> str:
    return "None"


def _boolean(_generator: CodeGenerator, node: exp.Boolean) -> str:
    return constant(bool(node.this))


_UNITS = {
    "WEEK": "weeks", "DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds",
    "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}  # fmt: skip


def _interval(generator: CodeGenerator, node: exp.Interval) -> str:
    unit = str(node.args.get("unit") or "").upper().removesuffix("S")
    try:
        amount = float(node.this.name)
        return generator.source.object(timedelta(**{_UNITS[unit]: amount}))
    except (KeyError, ValueError, AttributeError, OverflowError):
        return generator.fault(node, "an interval has an unknown form", "a form such as INTERVAL 5 MINUTES")


LITERALS: Mapping[type, Emitter] = {
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Interval: _interval,
}


def _column(generator: CodeGenerator, node: exp.Column) -> str:
    if isinstance(node.this, exp.Star):
        return generator.fault(node, "`*` is used where one value is expected", "a field")
    parts = [part.name for part in node.parts]
    return _path(generator, node, parts)


def _identifier(generator: CodeGenerator, node: exp.Identifier) -> str:
    return _path(generator, node, [node.name])


def _path(generator: CodeGenerator, node: exp.Expr, parts: list[str]) -> str:
    name = generator.lookup(parts[0])
    if name is None:
        return generator.fault(
            node, f"there is no value `{parts[0]}`", f"one of {generator.known}", "Correct the name."
        )
    for part in parts[1:]:
        if name in generator.types:
            return _no_object(generator, node, parts[0], name)
        name = _field(generator, name, part)
    return name


def _no_object(generator: CodeGenerator, node: exp.Expr, called: str, name: str) -> str:
    return generator.fault(
        node,
        f"`{called}` is a {generator.types[name]}, which has no fields or items",
        "an object or an array, as in the formats `json` and `avro:FILE`",
        "Set the format of the topic in `serdes`, or use the value without fields.",
    )


def _field(generator: CodeGenerator, name: str, field: str) -> str:
    called = generator.source.object(op.field, "g")
    wanted = constant(field)
    return generator.source.assign(
        f"{name}.get({wanted}) if type({name}) is dict else {called}({name}, {wanted})"
    )


def _dot(generator: CodeGenerator, node: exp.Dot) -> str:
    name = generator.value(node.this)
    if not isinstance(node.expression, exp.Identifier):
        return generator.fault(node, "a call on a value is not supported", "a field")
    if name in generator.types:
        return _no_object(generator, node, node.this.sql(dialect="spark"), name)
    if is_literal(name) or name == "None":
        name = generator.source.assign(name)
    return _field(generator, name, node.expression.name)


def _bracket(generator: CodeGenerator, node: exp.Bracket) -> str:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        return generator.fault(node, "a slice is not supported", "one index or name")
    name = generator.value(node.this)
    if name in generator.types:
        return _no_object(generator, node, node.this.sql(dialect="spark"), name)
    return generator.call(op.item, name, generator.value(node.expressions[0]))


NAMES: Mapping[type, Emitter] = {
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
}


def _cast(generator: CodeGenerator, node: exp.Cast) -> str:
    kind = node.to
    cast = CASTS.get(getattr(kind.this, "name", str(kind.this)))
    if cast is None or kind.expressions:
        return generator.fault(
            node, f"a cast to {kind.sql(dialect='spark')} is not supported", "a type of single values", ""
        )
    is_attempt = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
    value = generator.value(node.this)
    if cast is CASTS["BIGINT"] and value.isdigit():
        return value
    return generator.call(_attempts[cast] if is_attempt else cast, value)


_attempts = {cast: null_on_error(cast) for cast in CASTS.values()}


def _array(generator: CodeGenerator, node: exp.Array) -> str:
    return generator.source.assign(f"[{', '.join(generator.value(each) for each in node.expressions)}]")


def _call(generator: CodeGenerator, node: exp.Anonymous) -> str:
    name = str(node.this).lower()
    form = FORMS.get(name)
    if form is not None:
        return form(generator, node)
    function = FUNCTIONS.get(name)
    if function is None:
        return generator.fault(node, f"the function `{name}` is not supported")
    count = len(node.expressions)
    if count < function.least or (function.most is not None and count > function.most):
        most = "any number" if function.most is None else str(function.most)
        allowed = most if function.least == function.most else f"{function.least} to {most}"
        return generator.fault(node, f"`{name}` is called with {count} argument(s)", f"{allowed} argument(s)")
    arguments = [generator.value(each) for each in node.expressions]
    return generator.call(function.evaluate, *arguments, strict=function.strict)


def _adjacent_strings(generator: CodeGenerator, node: exp.Concat) -> str:
    """Spark reads `'it''s'` as one string and `'a' 'b'` as two; the syntax tree is the same for both."""
    return generator.fault(node, "adjacent strings", "one string", "Write \\' for a quote, || to join.")


def _inner(generator: CodeGenerator, node: exp.Paren) -> str:
    return generator.value(node.this)


CALLS: Mapping[type, Emitter] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: _array,
    exp.Concat: _adjacent_strings,
    exp.Anonymous: _call,
    exp.Paren: _inner,
}
