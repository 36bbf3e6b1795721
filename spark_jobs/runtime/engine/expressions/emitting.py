"""What emitters, of nodes and of forms, need of the generator."""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from sqlglot import exp

from spark_jobs.runtime.engine.expressions.source import Source
from spark_jobs.runtime.engine.records import Value


class Emitting(Protocol):
    """`generating.Generator`, as its emitters see it."""

    source: Source
    types: Mapping[str, str]
    """Of variables that hold neither fields nor items."""

    @property
    def known(self) -> str: ...
    def lookup(self, name: str) -> str | None: ...
    def value(self, node: exp.Expr) -> str: ...
    def fault(self, node: exp.Expr, summary: str, expected: str = "", fix: str = "") -> str: ...
    def call(self, function: Callable[..., Value], *arguments: str, strict: bool = False) -> str: ...
    def function_of(self, node: exp.Expr, counts: Collection[int]) -> str: ...
    def condition(self, node: exp.Expr) -> str: ...


Emitter = Callable[[Emitting, Value], str]
