"""How an operator is built and called.

A factory builds the function of a node once per task: `build(behavior, context) -> Process`. The function
processes one record (key, value, timestamp, headers). It forwards results with `context.forward`, which
calls the children in declaration order, depth first. Operators of tables receive a `Change` as value.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import attrs

from headwater.model.formats import Format
from headwater.model.nodes import ProcessorNode
from headwater_spark.engine.program_interface import EngineSettings, Serde
from headwater_spark.engine.records import Clock, Headers, Value
from headwater_spark.engine.task_context import TaskContext

Process = Callable[[Value, Value, int, Headers], None]
"""(key, value, timestamp, headers)"""

ValueGetter = Callable[[Value], tuple[Value, int] | None]
"""A table's key → its current (value, timestamp); None = no row (`KTableValueGetter`).

`operators.views.value_getter(view, context)` returns the getter of a `TableView`.
"""

StoreType = TypeVar("StoreType")


class NotRunnableError(Exception):
    """The document contains a node but not its behavior."""


@attrs.frozen
class OperatorContext:
    """What an operator knows of its node and task."""

    node: ProcessorNode
    children: Mapping[str, Process]
    """In declaration order."""
    forward: Process
    task: TaskContext

    @property
    def settings(self) -> EngineSettings:
        return self.task.program.settings

    def expression(self, text: str | None, *parameters: str) -> Callable[..., Value]:
        """Return the expression as a function of the parameters.

        Raises:
            NotRunnableError: The document has no such expression.
        """
        if text is None:
            raise NotRunnableError(f"{self.node.name} has no expression: the document does not contain it")
        return self.task.program.expression(text, parameters, self.task.current)

    def key_serde(self, wanted: Format | None) -> Serde:
        return self.task.program.serde(wanted, "key")

    def value_serde(self, wanted: Format | None) -> Serde:
        return self.task.program.serde(wanted, "value")

    def store(self, name: str, kind: type[StoreType]) -> StoreType:
        """Return the typed store; `kind` only tells the type checker its class."""
        del kind
        store: StoreType = self.task.stores.typed_store(name)
        return store

    def clock(self, name: str = "") -> Clock:
        """Return a clock of this node, or the clock of that name, which several nodes share."""
        return self.task.clock(name or self.node.name)


class OperatorFactory(Protocol):
    def __call__(self, behavior: Value, context: OperatorContext, /) -> Process: ...
