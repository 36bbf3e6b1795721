"""Find the problems that prevent an application from running, before it starts."""

from collections.abc import Collection, Iterator, Mapping

from headwater.model.nodes import Node, NodeTopology, SinkNode
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import TopologyDocument
from headwater_spark.engine.expressions import ExpressionError, Fault, compile_expression
from headwater_spark.engine.partitioners.static import CLASS, INITIAL, LinearHash, built_in
from headwater_spark.engine.program.formats import (
    Defaults,
    NodeFormats,
    UsedFormat,
    formats_by_node,
    used_formats,
)
from headwater_spark.engine.program.settings import setting_problems
from headwater_spark.engine.program.user_code import NodeExpression, class_of, expressions_of, is_class_name
from headwater_spark.engine.serdes import plain_serde, schema_key

_PLAIN = {
    **dict.fromkeys(("string", "uuid"), "STRING"),
    **dict.fromkeys(("long", "integer", "short"), "BIGINT"),
    **dict.fromkeys(("double", "float"), "DOUBLE"),
    "boolean": "BOOLEAN",
    "bytes": "BINARY",
}
"""Formats of single values → type in Spark SQL"""
_WHY_REQUIRED = "Planning does not need it, but records cannot be processed without it."


def problems_of(
    document: TopologyDocument, nodes: NodeTopology, schemas: Mapping[str, str] | None = None
) -> tuple[Problem, ...]:
    """Return all problems; `headwater run` does not start if there is any.

    `schemas`: texts of schemas by `serdes.schema_key`.
    """
    application = document.application
    if not document.has_calls:
        return (_only_described(document),)
    found = list(setting_problems(application))
    defaults = Defaults.from_config(application.config)
    formats = formats_by_node(nodes, defaults)
    for node in nodes.nodes:
        for expression in expressions_of(node):
            found += _check_expression(node, expression, formats[node.name])
        found += _check_class(node)
        if isinstance(node, SinkNode) and node.writes is not None and node.writes.partitioner is not None:
            found += _check_partitioner(node.writes.partitioner, document, node.at)
    if CLASS in application.config:
        found += _check_partitioner(application.config[CLASS], document, application.at)
    for used in used_formats(nodes, defaults):
        found += _check_format(used, schemas or {})
    return tuple(problem.located(application=application.id) for problem in dict.fromkeys(found))


def _check_expression(node: Node, expression: NodeExpression, formats: NodeFormats) -> Iterator[Problem]:
    if expression.text is None:
        yield _missing_part(
            node, f"`{expression.option}`", "a Spark SQL expression", f"Add `{expression.option}`."
        )
        return
    try:
        compile_expression(expression.text, expression.names, _check_types(expression.names, formats))
    except ExpressionError as error:
        for fault in error.faults:
            yield _unsupported_expression(node, expression, fault)


def _check_types(names: Collection[str], formats: NodeFormats) -> dict[str, str]:
    """Return the types of parameters that are single values."""
    known = {"key": formats.key, "value": formats.value}
    return {name: _PLAIN[it] for name, it in known.items() if name in names and it in _PLAIN}


def _missing_part(node: Node, what: str, expected: str, fix: str) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary=f"{node.name} cannot run: the document does not contain {what}.",
        node=node.name,
        expected=expected,
        found="nothing",
        why=_WHY_REQUIRED,
        fix=fix,
        location=node.at,
    )


def _unsupported_expression(node: Node, expression: NodeExpression, fault: Fault) -> Problem:
    return Problem(
        code=ProblemCode.UNSUPPORTED_EXPRESSION,
        summary=f"The runtime cannot evaluate `{expression.option}` of {node.name}: {fault.summary}.",
        node=node.name,
        expected=fault.expected,
        found=f"{fault.found} (line {fault.line}, column {fault.column} of the expression)",
        why="Expressions are compiled before the application starts, so that no record fails on one.",
        fix=fault.fix,
        location=node.at,
    )


def _check_class(node: Node) -> Iterator[Problem]:
    is_needed, name = class_of(node)
    if is_needed and name is None:
        yield _missing_part(node, "its class", "module:Class", "Add `class`.")
    elif name is not None and not is_class_name(name):
        yield Problem(
            code=ProblemCode.NOT_RUNNABLE,
            summary=f"{node.name} cannot run: the name of its class is not valid.",
            node=node.name,
            expected="module:Class",
            found=name,
            why=_WHY_REQUIRED,
            fix="Write the module, a colon, and the class: module:Class.",
            location=node.at,
        )


def _check_partitioner(name: str, document: TopologyDocument, at: Location | None) -> Iterator[Problem]:
    if name == "default" or is_class_name(name):
        return
    application = document.application
    partitioner, problems = built_in(name, application.config, at or application.at)
    yield from problems
    is_of_sink = at != application.at  # the compiler checks the application's
    if (
        is_of_sink
        and isinstance(partitioner, LinearHash)
        and partitioner.initial_partitions > (application.processors or 0)
    ):
        yield Problem(
            code=ProblemCode.INVALID_CONFIG,
            summary=f"`{CLASS}: linear-hash` is not for the processors of the application.",
            expected=f"at least `processors: {partitioner.initial_partitions}`, as `{INITIAL}`",
            found=f"`processors: {application.processors or 'follow'}`",
            why="With linear-hash, keys move to added partitions. Their state is found there only if the "
            "partition belongs to the same processor.",
            fix=f"Set `processors: {partitioner.initial_partitions}`, or choose `initial-hash`.",
            location=at or application.at,
        )


def _check_format(used: UsedFormat, schemas: Mapping[str, str]) -> Iterator[Problem]:
    name = used.format.name
    try:
        plain_serde(name, schemas.get(schema_key(name)))
    except ValueError as error:
        yield Problem(
            code=ProblemCode.UNSUPPORTED_FORMAT,
            summary=f"The format in which {used.what} at {used.node} cannot be used: {error}.",
            node=used.node,
            expected="a format of the runtime",
            found=name,
            why="Records cannot be read or written without it.",
            fix="Correct the format's name, or its schema file.",
            location=used.at,
        )


def _only_described(document: TopologyDocument) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        summary="The document has no calls, so the behavior of the nodes is unknown.",
        application=document.application.id,
        expected="`topology` with calls",
        found=next(
            f"`{section}`"
            for section, content in (
                ("describe", document.described),
                ("exported", document.exported),
                ("observed", document.observed),
            )
            if content is not None
        ),
        why="Its topics can be planned, but only its own program can process records.",
        fix="Write the topology as calls with their expressions.",
        location=document.application.at,
    )
