"""Python source under construction: lines of one function, with names of our own making only.

Whatever stems from the document enters as a constant by `repr` of a `str`, `int`, `float` or `bool`, or as an
object in the function's globals under a made-up name.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from spark_jobs.runtime.engine.records import Value

MOST_LEVELS = 60
"""Python allows 100 levels of indentation."""


class TooNestedError(Exception):
    """More levels than `MOST_LEVELS`."""


class Source:
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
        """A new variable that holds what `code` yields."""
        name = self.fresh()
        self.line(f"{name} = {code}")
        return name

    def object(self, value: Value, prefix: str = "o") -> str:
        """The name under which the function finds `value`; equal functions share one."""
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
    """A literal; numbers that Python cannot write as one are built."""
    if isinstance(value, float) and value in {float("inf"), float("-inf")}:
        return "1e999" if value > 0 else "-1e999"
    return repr(value)


_LITERALS = frozenset("0123456789-'\"")


def null_test(value: str, *, negated: bool = False) -> str:
    """Whether a value is null; Python warns of literals that are compared by identity."""
    if value != "None" and is_literal(value):
        return str(negated)
    return f"{value} is {'not ' if negated else ''}None"


def is_literal(code: str) -> bool:
    """A constant that is not null; all else that emitters return is `None` or a variable."""
    return code[0] in _LITERALS or code in {"True", "False"}


def make(source: str, objects: Mapping[str, Value]) -> Callable[..., Value]:
    """Execute generated source that defines `bind`, without built-ins but those it uses."""
    names: dict[str, Value] = {
        "__builtins__": {"type": type, "str": str, "int": int, "dict": dict, "list": list}
    }
    names.update(objects)
    exec(compile(source, "<expression>", "exec"), names)  # noqa: S102 - made from the tree alone
    bind: Callable[..., Value] = names["bind"]
    return bind
