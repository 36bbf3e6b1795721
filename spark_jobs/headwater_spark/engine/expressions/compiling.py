"""Compile the text of an expression to a function.

`Generator` generates Python source from a syntax tree; the emitters of the node types are in `nodes`. An
emitter adds lines, and returns the variable or literal of the result. Arguments that Spark does not always
evaluate (`case`, `coalesce`, `and`, `or`) are in `if` blocks. Operations on frequent types are generated
inline; for other types the source calls functions of `operations`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType

import attrs
from sqlglot import exp

from headwater_spark.engine.expressions import operations as op
from headwater_spark.engine.expressions.faults import ExpressionError, Fault
from headwater_spark.engine.expressions.nodes import BOOLEAN, EMITTERS, OPERANDS, OPTIONS
from headwater_spark.engine.expressions.parsing import parse, position, shortened
from headwater_spark.engine.expressions.source import Source, TooNestedError, is_literal, make
from headwater_spark.engine.records import CurrentRecord, Headers, Value


class Generator:
    """Generates source. It continues after faults, so that all are reported together."""

    def __init__(self, names: Mapping[str, str], types: Mapping[str, str]) -> None:
        """`names`: name → variable. `types`: variable of a single value → its type."""
        self.source = Source()
        self.faults: list[Fault] = []
        self.types = types
        self._names = dict(names)
        self.used: set[str] = set()

    def value(self, node: exp.Expr) -> str:
        """Return the variable or literal of the value of a node."""
        emit = EMITTERS.get(type(node))
        known = OPERANDS | OPTIONS.get(type(node), frozenset())
        unknown = [name for name, each in node.args.items() if each and name not in known]
        try:
            if emit is not None and not unknown:
                return emit(self, node)
        except TooNestedError:
            return self.fault(node, "it is nested too deeply", "fewer levels of `case` and the like")
        return self.fault(node, f"`{_head(node)}` is not supported")

    def fault(self, node: exp.Expr, summary: str, expected: str = "", fix: str = "") -> str:
        line, column = position(node)
        fault = Fault(summary, _shown(node), line=line, column=column)
        if expected:
            fault = Fault(
                summary, _shown(node), expected, fix or "Change the expression.", line=line, column=column
            )
        self.faults.append(fault)
        return "None"

    # variables in scope

    @property
    def known(self) -> str:
        return ", ".join(sorted(self._names))

    def lookup(self, name: str) -> str | None:
        """Return the variable of a parameter, also of a lambda; None = unknown. Names ignore case."""
        if name in self._names:
            self.used.add(name)
            return self._names[name]
        lowered = name.lower()
        if lowered in self._names:
            self.used.add(lowered)
            return self._names[lowered]
        return None

    def function_of(self, node: exp.Expr, counts: Collection[int]) -> str:
        """Generate a Python function for a lambda with one of these numbers of parameters."""
        if not isinstance(node, exp.Lambda):
            return self.fault(node, "a lambda is expected", "x -> …")
        names = [parameter.name.lower() for parameter in node.expressions]
        if len(names) not in counts:
            allowed = " or ".join(map(str, sorted(counts)))
            return self.fault(node, f"the lambda has {len(names)} parameter(s)", f"{allowed} parameter(s)")
        outer = self._names
        variables = [self.source.fresh("p") for _ in names]
        self._names = {**outer, **dict(zip(names, variables, strict=True))}
        function = self.source.fresh("f")
        with self.source.block(f"def {function}({', '.join(variables)}):"):
            self.source.line(f"return {self.value(node.this)}")
        self._names = outer
        return function

    # emitting

    def call(self, function: Callable[..., Value], *arguments: str, strict: bool = False) -> str:
        """Call a function of the engine; if `strict`, only if no argument is null."""
        name = self.source.object(function, "g")
        code = f"{name}({', '.join(arguments)})"
        nullable = [each for each in dict.fromkeys(arguments) if each == "None" or not is_literal(each)]
        if strict and "None" in nullable:
            return "None"
        if strict and nullable:
            tests = " or ".join(f"{each} is None" for each in nullable)
            code = f"None if {tests} else {code}"
        return self.source.assign(code)

    def condition(self, node: exp.Expr) -> str:
        """Return the variable of a condition: True, False or None."""
        name = self.value(node)
        if isinstance(node, BOOLEAN) or name in {"True", "False", "None"}:
            return name
        return self.call(op.truth, name)


def _head(node: exp.Expr) -> str:
    return type(node).__name__.upper() if not isinstance(node, exp.Anonymous) else f"{node.this}"


def _shown(node: exp.Expr) -> str:
    try:
        text = node.sql(dialect="spark")
    except (ValueError, RecursionError):
        text = type(node).__name__
    return shortened(text)


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
