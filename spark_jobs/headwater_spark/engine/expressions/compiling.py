"""Compile the text of an expression to a function."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from headwater_spark.engine.expressions.faults import ExpressionError, Fault
from headwater_spark.engine.expressions.generating import Generator
from headwater_spark.engine.expressions.parsing import parse
from headwater_spark.engine.expressions.source import make
from headwater_spark.engine.records import CurrentRecord, Headers, Value

_METADATA = {"topic": 0, "partition": 1, "offset": 2, "timestamp": 3, "headers": 6}
"""Name → position in an input record"""
_TYPES = {"topic": "STRING", "partition": "BIGINT", "offset": "BIGINT", "timestamp": "BIGINT"}
_UNKNOWN: Mapping[str, str] = MappingProxyType({})


@attrs.frozen
class Compiled:
    """A compiled expression: its text, the generated Python source, and the names that it uses."""

    text: str
    source: str
    names: frozenset[str]
    _make: Callable[[CurrentRecord], Callable[..., Value]] = attrs.field(repr=False, eq=False)

    def bind(self, current: CurrentRecord) -> Callable[..., Value]:
        """Return the function of the parameters; it reads other metadata of the record from `current`.

        The function raises EvaluationError where Spark fails.
        """
        return self._make(current)


def compile_expression(text: str, names: Sequence[str], types: Mapping[str, str] = _UNKNOWN) -> Compiled:
    """Compile an expression to a function of positional parameters.

    Args:
        text: The expression. It may also use `topic`, `partition`, `offset`, `timestamp` and `headers`.
        names: The names of the parameters.
        types: Spark's types of parameters that are single values, so that fields of them are faults.

    Raises:
        ExpressionError: The expression is not valid; the error has all faults.
    """
    tree = parse(text)
    variables = {name: f"v{position}" for position, name in enumerate(names)}
    metadata = {name: f"a{at}" for name, at in _METADATA.items() if name not in variables}
    scope = variables | metadata
    generator = Generator(scope, {scope[name]: kind for name, kind in (_TYPES | {**types}).items()})
    try:
        result = generator.value(tree)
    except RecursionError:
        raise ExpressionError([Fault("it is nested too deeply", text[:60])]) from None
    if generator.faults:
        raise ExpressionError(generator.faults)
    source = _source(generator, list(variables.values()), metadata, result)
    objects = {**generator.source.objects, "as_structs": _as_structs}
    return Compiled(text, source, frozenset(generator.used), make(source, objects))


def _source(generator: Generator, parameters: list[str], metadata: dict[str, str], result: str) -> str:
    lines = ["def bind(current):", f"  def evaluate({', '.join(parameters)}):"]
    used = [name for name in metadata if name in generator.used]
    if used:
        lines.append("    record = current.record")
    lines += [f"    {metadata[name]} = record[{_METADATA[name]}]" for name in used]
    if "headers" in generator.used:
        headers = generator.lookup("headers")
        lines.append(f"    {headers} = as_structs({headers})")
    body = generator.source.text()
    lines += [body] if body else []
    return "\n".join([*lines, f"    return {result}", "  return evaluate", ""])


def _as_structs(headers: Headers) -> Value:
    """Return headers as Spark's Kafka source does: an array of structs of `key` and `value`."""
    return [{"key": key, "value": value} for key, value in headers]
