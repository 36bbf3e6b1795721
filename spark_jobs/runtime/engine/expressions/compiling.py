"""From text to a function."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import attrs

from spark_jobs.runtime.engine.expressions.faults import ExpressionError, Fault
from spark_jobs.runtime.engine.expressions.generating import Generator
from spark_jobs.runtime.engine.expressions.parsing import parse
from spark_jobs.runtime.engine.expressions.source import make
from spark_jobs.runtime.engine.records import CurrentRecord, Headers, Value

_OF_THE_RECORD = {"topic": 0, "partition": 1, "offset": 2, "timestamp": 3, "headers": 6}
"""Name → its place in an input record."""
_TYPES = {"topic": "STRING", "partition": "BIGINT", "offset": "BIGINT", "timestamp": "BIGINT"}
_UNKNOWN: Mapping[str, str] = MappingProxyType({})


@attrs.frozen
class Compiled:
    """`source` is what was generated, for those who want to see it. `names` are those it uses."""

    text: str
    source: str
    names: frozenset[str]
    _make: Callable[[CurrentRecord], Callable[..., Value]] = attrs.field(repr=False, eq=False)

    def bind(self, current: CurrentRecord) -> Callable[..., Value]:
        """The function of the parameters; what else it asks of the record it reads from `current`.

        The function raises EvaluationError where Spark would fail.
        """
        return self._make(current)


def compile_expression(text: str, names: Sequence[str], types: Mapping[str, str] = _UNKNOWN) -> Compiled:
    """Compile `text` to a function of the positional parameters `names`.

    `topic`, `partition`, `offset`, `timestamp` and `headers` are known, too. `types`, as Spark calls
    them, are those of names that hold neither fields nor items: it is a fault to ask them for some.

    Raises:
        ExpressionError: With all that is wrong with it.
    """
    tree = parse(text)
    variables = {name: f"v{position}" for position, name in enumerate(names)}
    current = {name: f"a{at}" for name, at in _OF_THE_RECORD.items() if name not in variables}
    scope = variables | current
    generator = Generator(scope, {scope[name]: kind for name, kind in (_TYPES | {**types}).items()})
    try:
        result = generator.value(tree)
    except RecursionError:
        raise ExpressionError([Fault("it is nested too deeply", text[:60])]) from None
    if generator.faults:
        raise ExpressionError(generator.faults)
    source = _source(generator, list(variables.values()), current, result)
    objects = {**generator.source.objects, "as_structs": _as_structs}
    return Compiled(text, source, frozenset(generator.used), make(source, objects))


def _source(generator: Generator, parameters: list[str], current: dict[str, str], result: str) -> str:
    lines = ["def bind(current):", f"  def evaluate({', '.join(parameters)}):"]
    used = [name for name in current if name in generator.used]
    if used:
        lines.append("    record = current.record")
    lines += [f"    {current[name]} = record[{_OF_THE_RECORD[name]}]" for name in used]
    if "headers" in generator.used:
        headers = generator.lookup("headers")
        lines.append(f"    {headers} = as_structs({headers})")
    body = generator.source.text()
    lines += [body] if body else []
    return "\n".join([*lines, f"    return {result}", "  return evaluate", ""])


def _as_structs(headers: Headers) -> Value:
    """As Spark's Kafka source gives them: an array of structs of `key` and `value`."""
    return [{"key": key, "value": value} for key, value in headers]
