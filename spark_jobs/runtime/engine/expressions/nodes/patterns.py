"""`like`, `ilike`, `rlike`."""

from collections.abc import Callable, Mapping

from sqlglot import exp

from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting
from spark_jobs.runtime.engine.expressions.faults import EvaluationError
from spark_jobs.runtime.engine.expressions.functions.strings import ilike, like, like_pattern, rlike
from spark_jobs.runtime.engine.expressions.functions.strings import pattern as regular
from spark_jobs.runtime.engine.expressions.nodes.logic import negated
from spark_jobs.runtime.engine.expressions.source import constant
from spark_jobs.runtime.engine.records import Value


def _matching(function: Callable[..., Value], check: Callable[..., Value]) -> Emitter:
    """A constant pattern is checked while compiling."""

    def emit(generator: Emitting, node: exp.Expr, escape: str = "") -> str:
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
    _matching(rlike, regular),
)


def _escape(generator: Emitting, node: exp.Escape) -> str:
    character = node.expression.name
    if len(character) != 1 or not isinstance(node.this, exp.Like | exp.ILike):
        return generator.fault(node, "an escape of unknown form", "LIKE … ESCAPE 'c'")
    emit: Value = _like if isinstance(node.this, exp.Like) else _ilike
    result: str = emit(generator, node.this, character)
    return result


PATTERNS: Mapping[type, Emitter] = {
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.RegexpLike: _rlike,
    exp.Escape: _escape,
}
