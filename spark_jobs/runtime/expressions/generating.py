"""From the tree to Python source: one method for each form of the language.

A method emits lines and returns the name of a variable, or a literal, that holds the result. Arguments that
Spark does not always evaluate (`case`, `coalesce`, `and`, `or`) lie within `if` blocks. Where types decide,
the frequent ones are tested in place, all others go through `operations`.
"""

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta

from sqlglot import exp

from spark_jobs.runtime.expressions import operations as op
from spark_jobs.runtime.expressions.casts import CASTS
from spark_jobs.runtime.expressions.faults import EvaluationError, Fault
from spark_jobs.runtime.expressions.forms import FORMS
from spark_jobs.runtime.expressions.functions import FUNCTIONS
from spark_jobs.runtime.expressions.functions.numbers import attempted
from spark_jobs.runtime.expressions.functions.strings import ilike, like, like_pattern, rlike
from spark_jobs.runtime.expressions.functions.strings import pattern as regular
from spark_jobs.runtime.expressions.parsing import place, shortened
from spark_jobs.runtime.expressions.source import Source, TooNestedError, constant
from spark_jobs.runtime.records import Value

_LITERALS = frozenset("0123456789-'\"")


class Generator:
    """Collects faults and goes on after each, so that all of them are told at once."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self.source = Source()
        self.faults: list[Fault] = []
        self._names = dict(names)
        self.used: set[str] = set()

    def value(self, node: exp.Expr) -> str:
        """The variable, or the literal, that holds the value of `node`."""
        method = _METHODS.get(type(node))
        known = _OPERANDS | _OPTIONS.get(type(node), frozenset())
        unknown = [name for name, each in node.args.items() if each and name not in known]
        try:
            if method is not None and not unknown:
                return method(self, node)
        except TooNestedError:
            return self.fault(node, "it is nested too deeply", "fewer levels of `case` and the like")
        return self.fault(node, f"`{_head(node)}` is not supported")

    def fault(self, node: exp.Expr, summary: str, expected: str = "", fix: str = "") -> str:
        line, column = place(node)
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
        """The Python variable of a bound name or a lambda's; names are found whatever their case."""
        if name in self._names:
            self.used.add(name)
            return self._names[name]
        lowered = name.lower()
        if lowered in self._names:
            self.used.add(lowered)
            return self._names[lowered]
        return None

    def function_of(self, node: exp.Expr, counts: Collection[int]) -> str:
        """A lambda as a Python function; `counts` = how many parameters it may have."""
        if not isinstance(node, exp.Lambda):
            return self.fault(node, "a lambda is expected", "x -> …")
        names = [parameter.name.lower() for parameter in node.expressions]
        if len(names) not in counts:
            allowed = " or ".join(map(str, sorted(counts)))
            return self.fault(node, f"a lambda of {len(names)} parameter(s)", f"{allowed} parameter(s)")
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
        """Call an object of ours; a strict one only if no argument is null."""
        name = self.source.object(function, "g")
        code = f"{name}({', '.join(arguments)})"
        nullable = [each for each in dict.fromkeys(arguments) if each == "None" or not _is_literal(each)]
        if strict and "None" in nullable:
            return "None"
        if strict and nullable:
            tests = " or ".join(f"{each} is None" for each in nullable)
            code = f"None if {tests} else {code}"
        return self.source.assign(code)

    def condition(self, node: exp.Expr) -> str:
        """A value that is True, False or None."""
        name = self.value(node)
        if isinstance(node, _BOOLEAN) or name in {"True", "False", "None"}:
            return name
        return self.call(op.truth, name)


def _is_literal(code: str) -> bool:
    return code[0] in _LITERALS or code in {"True", "False"}


def _head(node: exp.Expr) -> str:
    return type(node).__name__.upper() if not isinstance(node, exp.Anonymous) else f"{node.this}"


def _shown(node: exp.Expr) -> str:
    try:
        text = node.sql(dialect="spark")
    except (ValueError, RecursionError):
        text = type(node).__name__
    return shortened(text)


_BOOLEAN = (
    exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or,
    exp.Not, exp.Is, exp.In, exp.Between, exp.Like, exp.ILike, exp.RegexpLike, exp.Escape, exp.Boolean,
)  # fmt: skip


_OPERANDS = frozenset({"this", "expression", "expressions"})
_OPTIONS: Mapping[type, frozenset[str]] = {
    exp.Literal: frozenset({"is_string"}),
    exp.Identifier: frozenset({"quoted"}),
    exp.Column: frozenset({"table", "db", "catalog"}),
    exp.Interval: frozenset({"unit"}),
    exp.Between: frozenset({"low", "high"}),
    exp.In: frozenset({"query", "unnest"}),
    exp.Like: frozenset({"negate"}),
    exp.ILike: frozenset({"negate"}),
    exp.Case: frozenset({"ifs", "default"}),
    exp.If: frozenset({"true", "false"}),
    exp.Cast: frozenset({"to"}),
    exp.TryCast: frozenset({"to", "safe"}),
    exp.Div: frozenset({"typed", "safe"}),
    exp.DPipe: frozenset({"safe"}),
    exp.Concat: frozenset({"safe", "coalesce"}),
}
"""What the tree may say besides operands. Anything else would be passed over in silence: it is a fault."""


# literals


def _literal(generator: Generator, node: exp.Literal) -> str:
    text = str(node.this)
    if node.is_string:
        return constant(text)
    if text.isdigit():
        number = int(text)
        if number > op.LONG_MAX + 1:
            return generator.fault(node, "a whole number beyond 64 bits", "a BIGINT")
        return constant(number)
    try:
        return constant(float(text))
    except ValueError:
        return generator.fault(node, "a number of unknown form")


def _null(_generator: Generator, _node: exp.Null) -> str:
    return "None"


def _boolean(_generator: Generator, node: exp.Boolean) -> str:
    return constant(bool(node.this))


_UNITS = {
    "WEEK": "weeks", "DAY": "days", "HOUR": "hours", "MINUTE": "minutes", "SECOND": "seconds",
    "MILLISECOND": "milliseconds", "MICROSECOND": "microseconds",
}  # fmt: skip


def _interval(generator: Generator, node: exp.Interval) -> str:
    unit = str(node.args.get("unit") or "").upper().removesuffix("S")
    try:
        amount = float(node.this.name)
        return generator.source.object(timedelta(**{_UNITS[unit]: amount}))
    except (KeyError, ValueError, AttributeError, OverflowError):
        return generator.fault(node, "an interval of unknown form", "such as INTERVAL 5 MINUTES")


# names and access


def _column(generator: Generator, node: exp.Column) -> str:
    if isinstance(node.this, exp.Star):
        return generator.fault(node, "`*` stands where one value is expected", "a field")
    parts = [part.name for part in node.parts]
    return _path(generator, node, parts)


def _identifier(generator: Generator, node: exp.Identifier) -> str:
    return _path(generator, node, [node.name])


def _path(generator: Generator, node: exp.Expr, parts: list[str]) -> str:
    name = generator.lookup(parts[0])
    if name is None:
        return generator.fault(
            node, f"no value is called {parts[0]}", f"one of {generator.known}", "Correct the name."
        )
    for part in parts[1:]:
        name = _field(generator, name, part)
    return name


def _field(generator: Generator, name: str, field: str) -> str:
    called = generator.source.object(op.field, "g")
    wanted = constant(field)
    return generator.source.assign(
        f"{name}.get({wanted}) if type({name}) is dict else {called}({name}, {wanted})"
    )


def _dot(generator: Generator, node: exp.Dot) -> str:
    name = generator.value(node.this)
    if not isinstance(node.expression, exp.Identifier):
        return generator.fault(node, "a call upon a value", "a field")
    if _is_literal(name) or name == "None":
        name = generator.source.assign(name)
    return _field(generator, name, node.expression.name)


def _bracket(generator: Generator, node: exp.Bracket) -> str:
    if len(node.expressions) != 1 or isinstance(node.expressions[0], exp.Slice):
        return generator.fault(node, "a slice", "one index or name")
    return generator.call(op.item, generator.value(node.this), generator.value(node.expressions[0]))


# operators


def _binary(operation: Callable[..., Value]) -> Callable[[Generator, Value], str]:
    def emit(generator: Generator, node: exp.Binary) -> str:
        left, right = generator.value(node.left), generator.value(node.right)
        return generator.call(operation, left, right)

    return emit


def _comparison(operation: Callable[..., Value], symbol: str) -> Callable[[Generator, Value], str]:
    """Whole numbers are compared in place, and strings with a constant."""

    def emit(generator: Generator, node: exp.Binary) -> str:
        left, right = generator.value(node.left), generator.value(node.right)
        tests = [_frequent(each, left, right) for each in (left, right)]
        called = generator.source.object(operation, "g")
        wanted = [test for test in dict.fromkeys(tests) if test]
        slow = f"{called}({left}, {right})"
        if None in tests or not wanted:
            return generator.source.assign(slow)
        return generator.source.assign(f"{left} {symbol} {right} if {' and '.join(wanted)} else {slow}")

    return emit


def _frequent(name: str, left: str, right: str) -> str | None:
    """The test under which a comparison of two operands is Python's; "" = holds anyway, None = never."""
    kind = "str" if left[0] in "'\"" or right[0] in "'\"" else "int"
    if name in {"None", "True", "False"}:
        return None
    if _is_literal(name):
        is_text = name[0] in "'\""
        if is_text != (kind == "str") or (not is_text and not name.lstrip("-").isdigit()):
            return None
        return ""
    return f"type({name}) is {kind}"


def _negation(generator: Generator, node: exp.Neg) -> str:
    value = generator.value(node.this)
    if value.isdigit():
        return f"-{value}"
    return generator.call(op.negate, value)


def _not(generator: Generator, node: exp.Not) -> str:
    if isinstance(node.this, exp.Is):
        return _is(generator, node.this, negated=True)
    return _negated(generator, generator.condition(node.this))


def _negated(generator: Generator, value: str) -> str:
    if _is_literal(value) or value == "None":
        return {"True": "False", "False": "True"}.get(value, "None")
    return generator.source.assign(f"None if {value} is None else not {value}")


def _logic(decided: str, combine: Callable[..., Value]) -> Callable[[Generator, Value], str]:
    """The right side is not evaluated where the left one decides."""

    def emit(generator: Generator, node: exp.Binary) -> str:
        left = generator.condition(node.left)
        result = generator.source.assign(left)
        with generator.source.block(f"if {result} is not {decided}:"):
            right = generator.condition(node.right)
            called = generator.source.object(combine, "g")
            generator.source.line(f"{result} = {called}({result}, {right})")
        return result

    return emit


def _is(generator: Generator, node: exp.Is, *, negated: bool = False) -> str:
    wanted = node.expression
    if isinstance(wanted, exp.Null):
        test = generator.value(node.this), "None"
    elif isinstance(wanted, exp.Boolean):
        test = generator.condition(node.this), constant(bool(wanted.this))
    else:
        return generator.fault(node, "`is` of something else", "NULL, TRUE or FALSE")
    return generator.source.assign(f"{test[0]} is {'not ' if negated else ''}{test[1]}")


def _in(generator: Generator, node: exp.In) -> str:
    if node.args.get("query") is not None or node.args.get("unnest") is not None:
        return generator.fault(node, "a subquery", "a list of values")
    wanted = generator.value(node.this)
    members = [generator.value(each) for each in node.expressions]
    return generator.call(is_member, wanted, f"({', '.join(members)},)")


def is_member(value: Value, members: tuple[Value, ...]) -> Value:
    """`in`: null if it is not found and a null might have been it."""
    if value is None:
        return None
    for member in members:
        if member is not None and op.compare(value, member) == 0:
            return True
    return None if None in members else False


def _between(generator: Generator, node: exp.Between) -> str:
    value = generator.value(node.this)
    low, high = generator.value(node.args["low"]), generator.value(node.args["high"])
    above = generator.call(op.greater_or_equal, value, low)
    below = generator.call(op.less_or_equal, value, high)
    return generator.call(op.both, above, below)


def _matching(
    function: Callable[..., Value], check: Callable[..., Value]
) -> Callable[[Generator, Value], str]:
    """A constant pattern is checked while compiling."""

    def emit(generator: Generator, node: exp.Expr, escape: str = "") -> str:
        searched = node.expression
        if isinstance(searched, exp.Literal) and searched.is_string:
            try:
                check(str(searched.this), *([escape] if escape else []))
            except EvaluationError as error:
                return generator.fault(searched, str(error), "a valid pattern", "Correct the pattern.")
        arguments = [generator.value(node.this), generator.value(searched)]
        found = generator.call(function, *arguments, *([constant(escape)] if escape else []), strict=True)
        return _negated(generator, found) if node.args.get("negate") else found

    return emit


_like, _ilike, _rlike = (
    _matching(like, like_pattern),
    _matching(ilike, like_pattern),
    _matching(rlike, regular),
)


def _escape(generator: Generator, node: exp.Escape) -> str:
    character = node.expression.name
    if len(character) != 1 or not isinstance(node.this, exp.Like | exp.ILike):
        return generator.fault(node, "an escape of unknown form", "LIKE … ESCAPE 'c'")
    emit: Value = _like if isinstance(node.this, exp.Like) else _ilike
    result: str = emit(generator, node.this, character)
    return result


# choices


def _case(generator: Generator, node: exp.Case) -> str:
    subject = generator.value(node.this) if node.this is not None else None
    result = generator.source.assign("None")
    _choices(generator, result, subject, node.args["ifs"], node.args.get("default"))
    return result


def _if(generator: Generator, node: exp.If) -> str:
    result = generator.source.assign("None")
    _choices(generator, result, None, [node], node.args.get("false"))
    return result


def _choices(
    generator: Generator, result: str, subject: str | None, branches: list[exp.If], default: exp.Expr | None
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


# casts and calls


def _cast(generator: Generator, node: exp.Cast) -> str:
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


def _array(generator: Generator, node: exp.Array) -> str:
    return generator.source.assign(f"[{', '.join(generator.value(each) for each in node.expressions)}]")


def _call(generator: Generator, node: exp.Anonymous) -> str:
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


def _side_by_side(generator: Generator, node: exp.Concat) -> str:
    """Spark reads `'it''s'` as one text with a quote and `'a' 'b'` as two; the tree does not tell which."""
    return generator.fault(node, "two texts side by side", "one text", "Write \\' for a quote, || to join.")


def _inner(generator: Generator, node: exp.Paren) -> str:
    return generator.value(node.this)


_METHODS: Mapping[type, Callable[[Generator, Value], str]] = {
    exp.Literal: _literal,
    exp.Null: _null,
    exp.Boolean: _boolean,
    exp.Interval: _interval,
    exp.Column: _column,
    exp.Identifier: _identifier,
    exp.Dot: _dot,
    exp.Bracket: _bracket,
    exp.Paren: _inner,
    exp.Add: _binary(op.add),
    exp.Sub: _binary(op.subtract),
    exp.Mul: _binary(op.multiply),
    exp.Div: _binary(op.divide),
    exp.IntDiv: _binary(op.whole_divide),
    exp.Mod: _binary(op.remainder),
    exp.BitwiseAnd: _binary(op.bit_and),
    exp.BitwiseOr: _binary(op.bit_or),
    exp.BitwiseXor: _binary(op.bit_xor),
    exp.BitwiseNot: lambda generator, node: generator.call(op.bit_not, generator.value(node.this)),
    exp.DPipe: lambda generator, node: generator.call(
        FUNCTIONS["concat"].evaluate, generator.value(node.left), generator.value(node.right), strict=True
    ),
    exp.EQ: _comparison(op.equal, "=="),
    exp.NEQ: _comparison(op.not_equal, "!="),
    exp.GT: _comparison(op.greater, ">"),
    exp.GTE: _comparison(op.greater_or_equal, ">="),
    exp.LT: _comparison(op.less, "<"),
    exp.LTE: _comparison(op.less_or_equal, "<="),
    exp.NullSafeEQ: _binary(op.same),
    exp.NullSafeNEQ: _binary(lambda left, right: not op.same(left, right)),
    exp.And: _logic("False", op.both),
    exp.Or: _logic("True", op.either),
    exp.Not: _not,
    exp.Neg: _negation,
    exp.Is: _is,
    exp.In: _in,
    exp.Between: _between,
    exp.Like: _like,
    exp.ILike: _ilike,
    exp.RegexpLike: _rlike,
    exp.Escape: _escape,
    exp.Case: _case,
    exp.If: _if,
    exp.Cast: _cast,
    exp.TryCast: _cast,
    exp.Array: _array,
    exp.Concat: _side_by_side,
    exp.Anonymous: _call,
}
