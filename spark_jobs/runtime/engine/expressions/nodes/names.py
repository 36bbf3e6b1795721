"""Parameters, and the fields and items of what they hold."""

from collections.abc import Mapping

from sqlglot import exp

from spark_jobs.runtime.engine.expressions import operations as op
from spark_jobs.runtime.engine.expressions.emitting import Emitter, Emitting
from spark_jobs.runtime.engine.expressions.source import constant, is_literal


def _column(generator: Emitting, node: exp.Column) -> str:
    if isinstance(node.this, exp.Star):
        return generator.fault(node, "`*` stands where one value is expected", "a field")
    parts = [part.name for part in node.parts]
    return _path(generator, node, parts)


def _identifier(generator: Emitting, node: exp.Identifier) -> str:
    return _path(generator, node, [node.name])


def _path(generator: Emitting, node: exp.Expr, parts: list[str]) -> str:
    name = generator.lookup(parts[0])
    if name is None:
        return generator.fault(
            node, f"no value is called {parts[0]}", f"one of {generator.known}", "Correct the name."
        )
    for part in parts[1:]:
        if name in generator.types:
            return _no_object(generator, node, parts[0], name)
        name = _field(generator, name, part)
    return name


def _no_object(generator: Emitting, node: exp.Expr, called: str, name: str) -> str:
    return generator.fault(
        node,
        f"`{called}` is a {generator.types[name]}, which has neither fields nor items",
        "an object or an array, as the formats `json` and `avro:FILE` have them",
        "Say in `serdes` how the topic's data is written, or use what there is as it is.",
    )


def _field(generator: Emitting, name: str, field: str) -> str:
    called = generator.source.object(op.field, "g")
    wanted = constant(field)
    return generator.source.assign(
        f"{name}.get({wanted}) if type({name}) is dict else {called}({name}, {wanted})"
    )


def _dot(generator: Emitting, node: exp.Dot) -> str:
    name = generator.value(node.this)
    if not isinstance(node.expression, exp.Identifier):
        return generator.fault(node, "a call upon a value", "a field")
    if name in generator.types:
        return _no_object(generator, node, node.this.sql(dialect="spark"), name)
    if is_literal(name) or name == "None":
        name = generator.source.assign(name)
    return _field(generator, name, node.expression.name)


def _bracket(generator: Emitting, node: exp.Bracket) -> str:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        return generator.fault(node, "a slice", "one index or name")
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
