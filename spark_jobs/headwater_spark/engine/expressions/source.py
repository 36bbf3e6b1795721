"""Python source under construction: the lines of one function.

All names in it are generated. Constants of the document are written by `repr` of a `str`, `int`, `float` or
`bool`; other objects are globals of the function under generated names.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from sqlglot import exp

from headwater_spark.engine.records import Value

MOST_LEVELS = 60
"""Python allows 100 levels of indentation."""


class TooNestedError(Exception):
    """More levels than `MOST_LEVELS`."""


class Source:
    """The lines of a function body, and the objects that it uses."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._level = 1
        self._next = 0
        self.objects: dict[str, Value] = {}

    def fresh(self, prefix: str = "t") -> str:
        self._next += 1
        return f"{prefix}{self._next}"

    def line(self, text: str) -> None:
        self._lines.append("    " * self._level + text)

    def assign(self, code: str) -> str:
        """Assign the result of `code` to a new variable; return its name."""
        name = self.fresh()
        self.line(f"{name} = {code}")
        return name

    def object(self, value: Value, prefix: str = "o") -> str:
        """Return the global name of `value`; the same function has one name."""
        if callable(value):
            for name, known in self.objects.items():
                if known is value:
                    return name
        name = self.fresh(prefix)
        self.objects[name] = value
        return name

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        self.line(head)
        self._level += 1
        if self._level > MOST_LEVELS:
            raise TooNestedError
        yield
        self._level -= 1

    def text(self) -> str:
        return "\n".join(self._lines)


def constant(value: str | float | bool | None) -> str:  # noqa: FBT001
    """Return a literal of the value."""
    if isinstance(value, float) and value in {float("inf"), float("-inf")}:
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


_LITERALS = frozenset("0123456789-'\"")


def null_test(value: str, *, negated: bool = False) -> str:
    """Return a test for null. For literals it is constant: Python warns if they are compared by identity."""
    if value != "None" and is_literal(value):
        return str(negated)
    return f"{value} is {'not ' if negated else ''}None"


def is_literal(code: str) -> bool:
    """Return whether the code is a constant other than null; otherwise it is `None` or a variable."""
    return code[0] in _LITERALS or code in {"True", "False"}


def execute_source(source: str, objects: Mapping[str, Value]) -> Callable[..., Value]:
    """Execute generated source, and return its function `bind`. Only a few built-ins are available to it."""
    names: dict[str, Value] = {
        "__builtins__": {"type": type, "str": str, "int": int, "dict": dict, "list": list}
    }
    names.update(objects)
    exec(compile(source, "<expression>", "exec"), names)  # noqa: S102 - generated from the syntax tree only
    bind: Callable[..., Value] = names["bind"]
    return bind


class CodeGenerator(Protocol):
    """The code generator, as emitters use it (`compiling.Generator`)."""

    source: Source
    types: Mapping[str, str]
    """Variable of a single value → its type"""

    @property
    def known(self) -> str: ...
    def lookup(self, name: str) -> str | None: ...
    def value(self, node: exp.Expr) -> str: ...
    def fault(self, node: exp.Expr, summary: str, expected: str = "", fix: str = "") -> str: ...
    def call(self, function: Callable[..., Value], *arguments: str, strict: bool = False) -> str: ...
    def function_of(self, node: exp.Expr, counts: Collection[int]) -> str: ...
    def condition(self, node: exp.Expr) -> str: ...


Emitter = Callable[[CodeGenerator, Value], str]
