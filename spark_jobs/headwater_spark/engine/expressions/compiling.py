"""Compile the text of an expression to a function: parse it with sqlglot, and generate Python source.

sqlglot translates functions between dialects, and does not keep the original function. The dialect here has
no functions: each call remains a name with arguments, with the meaning that it has in Spark.

`Generator` adds the lines of a syntax tree; the emitters of the node types are in `nodes`. An emitter adds
lines, and returns the variable or literal of the result. Arguments that Spark does not always evaluate
(`case`, `coalesce`, `and`, `or`) are in `if` blocks. Operations on frequent types are generated inline; for
other types the source calls functions of `operations`.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import ClassVar

import attrs
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.parsers.spark import SparkParser

from headwater_spark.engine.expressions import operations as op
from headwater_spark.engine.expressions.faults import (
    DEEPEST,
    LONGEST_TEXT,
    MOST_DIGITS,
    MOST_NODES,
    MOST_STEPS,
    ExpressionError,
    Fault,
)
from headwater_spark.engine.expressions.nodes import BOOLEAN, EMITTERS, OPERANDS, OPTIONS
from headwater_spark.engine.expressions.source import Source, TooNestedError, execute_source, is_literal
from headwater_spark.engine.records import CurrentRecord, Headers, Value


class _TooManyStepsError(Exception):
    pass


class _Expressions(Spark):
    class Parser(SparkParser):
        FUNCTIONS: ClassVar[Value] = {"ARRAY": exp.Array.from_arg_list}
        FUNCTION_PARSERS: ClassVar[Value] = {
            "CAST": lambda self: self._parse_cast(strict=True),
            "TRY_CAST": lambda self: self._parse_cast(strict=False, safe=True),
        }
        NO_PAREN_FUNCTIONS: ClassVar[Value] = {}
        NO_PAREN_FUNCTION_PARSERS: ClassVar[Value] = {
            word: SparkParser.NO_PAREN_FUNCTION_PARSERS[word] for word in ("CASE", "IF")
        }
        steps = 0

        def _advance(self, times: int = 1) -> None:
            self.steps += 1
            if self.steps > MOST_STEPS * (10 + self._tokens_size):
                raise _TooManyStepsError
            super()._advance(times)


_DIALECT = _Expressions()
_LONGEST_QUOTE = 60


def parse_expression(text: str) -> exp.Expr:
    """Return the syntax tree of one expression.

    Raises:
        ExpressionError: The text is not an expression, or exceeds the limits.
    """
    if len(text) > LONGEST_TEXT:
        raise _too_much(f"{len(text)} characters", f"at most {LONGEST_TEXT} characters")
    try:
        trees = [tree for tree in _DIALECT.parse(text) if tree is not None]
    except ParseError as error:
        raise ExpressionError(_faults(error)) from None
    except (RecursionError, _TooManyStepsError):
        raise _too_much("nested too deeply to be read", f"at most {DEEPEST} levels") from None
    except SqlglotError:
        raise ExpressionError([Fault("it is not SQL", _show_text(text), fix=_CLOSE)]) from None
    if len(trees) != 1:
        summary = "it is empty" if not trees else "it is more than one expression"
        raise ExpressionError([Fault(summary, _show_text(text), "one expression", "Write one expression.")])
    _check_size(trees[0])
    return trees[0]


def find_position(node: exp.Expr) -> tuple[int, int]:
    """Return line and column of the start of a node, as far as sqlglot knows them."""
    for each in node.walk():
        if "line" in each.meta:
            return each.meta["line"], max(1, each.meta["col"] - len(each.name) + 1)
    return 1, 1


def _check_size(tree: exp.Expr) -> None:
    pending = [(tree, 1)]
    nodes = 0
    while pending:
        node, depth = pending.pop()
        nodes += 1
        if depth > DEEPEST:
            raise _too_much(f"more than {DEEPEST} levels", f"at most {DEEPEST} levels")
        if isinstance(node, exp.Literal) and node.is_number and len(node.name) > MOST_DIGITS:
            raise _too_much(f"a number of {len(node.name)} digits", f"at most {MOST_DIGITS} digits")
        if nodes > MOST_NODES:
            raise _too_much(f"more than {MOST_NODES} parts", f"at most {MOST_NODES} parts")
        pending.extend((child, depth + 1) for child in node.iter_expressions())


_CORRECT = "Correct the expression."
_CLOSE = "Correct the expression. Check that each quote, backquote and comment is closed."


def _faults(error: ParseError) -> list[Fault]:
    return [
        Fault(
            f"it is not SQL ({_reason(each['description'])})",
            str(each["highlight"]) or "the end",
            line=each["line"] or 1,
            column=each["col"] or 1,
            fix=_CORRECT,
        )
        for each in error.errors
    ] or [Fault("it is not SQL", "the text", fix=_CORRECT)]


def _reason(description: str) -> str:
    """Return a description of the parser in words that do not name its classes."""
    if description.startswith("Required keyword"):
        return "an operand or an argument is missing"
    if description.startswith("Invalid expression"):
        return "unexpected token"
    if (missing := re.fullmatch(r"Expect(?:ing|ed) (\W+)", description)) is not None:
        return f"`{missing[1]}` is missing"
    return description[:1].lower() + description[1:]


def _too_much(found: str, expected: str) -> ExpressionError:
    return ExpressionError(
        [Fault("it is too large", found, expected, "Split it over several operators, or use a processor.")]
    )


def shorten_text(text: str) -> str:
    """Return at most 60 characters of an expression, as problems quote it."""
    return text if len(text) <= _LONGEST_QUOTE else f"{text[: _LONGEST_QUOTE - 3]}..."


def _show_text(text: str) -> str:
    return shorten_text(text.strip())


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
        line, column = find_position(node)
        fault = Fault(summary, _quote_node(node), line=line, column=column)
        if expected:
            fault = Fault(
                summary,
                _quote_node(node),
                expected,
                fix or "Change the expression.",
                line=line,
                column=column,
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


def _quote_node(node: exp.Expr) -> str:
    try:
        text = node.sql(dialect="spark")
    except (ValueError, RecursionError):
        text = type(node).__name__
    return shorten_text(text)


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
    tree = parse_expression(text)
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
    return Compiled(text, source, frozenset(generator.used), execute_source(source, objects))


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
