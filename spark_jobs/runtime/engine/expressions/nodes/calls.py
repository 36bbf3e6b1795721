"""Casts, arrays and functions."""

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.runtime.engine.expressions.casts import CASTS
from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting
from spark_jobs.runtime.engine.expressions.forms import FORMS
from spark_jobs.runtime.engine.expressions.functions import FUNCTIONS
from spark_jobs.runtime.engine.expressions.functions.numbers import attempted


def _cast(generator: Emitting, node: exp.Cast) -> str:
    kind = node.to
    cast = CASTS.get(getattr(kind.this, "name", str(kind.this)))
    if cast is None or kind.expressions:
        return generator.fault(node, f"a cast to {kind.sql(dialect='spark')}", "a type of one value", "")
    is_attempt = isinstance(node, exp.TryCast) and bool(node.args.get("safe"))
    value = generator.value(node.this)
    if cast is CASTS["BIGINT"] and value.isdigit():
        return value
    return generator.call(_attempts[cast] if is_attempt else cast, value)


_attempts = {cast: attempted(cast) for cast in CASTS.values()}


def _array(generator: Emitting, node: exp.Array) -> str:
    return generator.source.assign(f"[{', '.join(generator.value(each) for each in node.expressions)}]")


def _call(generator: Emitting, node: exp.Anonymous) -> str:
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


def _side_by_side(generator: Emitting, node: exp.Concat) -> str:
    """Spark reads `'it''s'` as one text with a quote and `'a' 'b'` as two; the tree does not tell which."""
    return generator.fault(node, "two texts side by side", "one text", "Write \\' for a quote, || to join.")


def _inner(generator: Emitting, node: exp.Paren) -> str:
    return generator.value(node.this)


CALLS: Mapping[type, Emitter] = {
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: _array,
    exp.Concat: _side_by_side,
    exp.Anonymous: _call,
    exp.Paren: _inner,
}
