"""`case` and `if`: only what is chosen is evaluated."""

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.runtime.engine.expressions import operations as op
from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting


def _case(generator: Emitting, node: exp.Case) -> str:
    subject = generator.value(node.this) if node.this is not None else None
    result = generator.source.assign("None")
    _choices(generator, result, subject, node.args["ifs"], node.args.get("default"))
    return result


def _if(generator: Emitting, node: exp.If) -> str:
    result = generator.source.assign("None")
    _choices(generator, result, None, [node], node.args.get("false"))
    return result


def _choices(
    generator: Emitting, result: str, subject: str | None, branches: list[exp.If], default: exp.Expr | None
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
