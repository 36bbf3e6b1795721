"""Generate Python source from a syntax tree; the emitters of the node types are in `nodes`.

An emitter adds lines, and returns the variable or literal of the result. Arguments that Spark does not always
evaluate (`case`, `coalesce`, `and`, `or`) are in `if` blocks. Operations on frequent types are generated
inline; for other types the source calls functions of `operations`.
"""

from collections.abc import Callable, Collection, Mapping

from sqlglot import exp

from headwater_spark.engine.expressions import operations as op
from headwater_spark.engine.expressions.faults import Fault
from headwater_spark.engine.expressions.nodes import BOOLEAN, EMITTERS, OPERANDS, OPTIONS
from headwater_spark.engine.expressions.parsing import position, shortened
from headwater_spark.engine.expressions.source import Source, TooNestedError, is_literal
from headwater_spark.engine.records import Value


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
