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
from headwater_spark.engine.clocks import Clock
from headwater_spark.engine.key_counts import CountPerKey, WindowCounts
from headwater_spark.engine.program_interface import EngineSettings, Program, Serde
from headwater_spark.engine.records import CurrentRecord, Headers, Value
from headwater_spark.engine.stores.layers import Append
from headwater_spark.processors import Cancellable, PunctuationType

Process = Callable[[Value, Value, int, Headers], None]
"""(key, value, timestamp, headers)"""

ValueGetter = Callable[[Value], tuple[Value, int] | None]
"""A table's key → its current (value, timestamp); None = no row (`KTableValueGetter`).

`operators.views.value_getter(view, context)` returns the getter of a `TableView`.
"""

StoreType = TypeVar("StoreType")


class NotRunnableError(Exception):
    """The document contains a node but not its behavior."""


class TaskServices(Protocol):
    """What operators use of their task (`task_context.TaskContext`)."""

    program: Program
    partition: int
    append: Append
    current: CurrentRecord
    stream_time: Clock
    """The largest timestamp of the task's input."""
    task_id: str
    logger: Callable[[str], Callable[..., None]]
    """Node name → function (event, **fields) that logs a record."""

    @property
    def application_id(self) -> str: ...
    def wall_clock(self) -> int:
        """Return the wall-clock time of the batch, in milliseconds."""
        ...

    def is_global_store(self, name: str) -> bool: ...
    def typed_store(self, name: str) -> Value:
        """Return the store with the interface of its kind (`StoreSettings.kind`)."""
        ...

    def clock(self, name: str) -> Clock: ...

    def schedule(
        self,
        node: str,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
    ) -> Cancellable: ...

    def on_open(self, node: str, open_: Callable[[], None]) -> None:
        """Call `open_` before the first batch, parents before children."""
        ...

    def on_batch_end(self, finish: Callable[[], None]) -> None:
        """Call `finish` after the records of each batch, before caches are flushed."""
        ...

    def on_close(self, close: Callable[[], None]) -> None: ...

    def on_key_counts(self, node: str, count: CountPerKey) -> None:
        """Call `count` once per key of a batch, if possible, not the node per record (`key_counts`)."""
        ...

    def on_window_counts(self, node: str, counter: WindowCounts) -> None:
        """Let `counter` process a batch in columns, if possible, not the node per record."""
        ...

    def on_column_totals(self, node: str, totals: object) -> None:
        """Aggregate whole columns, if possible, with the totals of a node (`cached_aggregate.Totals`)."""
        ...

    def drop(self, node: str, reason: str) -> None:
        """Count a dropped record (`dropped-records-total`)."""
        ...


@attrs.frozen
class OperatorContext:
    """What an operator knows of its node and task."""

    node: ProcessorNode
    children: Mapping[str, Process]
    """In declaration order."""
    forward: Process
    task: TaskServices

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
        store: StoreType = self.task.typed_store(name)
        return store

    def clock(self, name: str = "") -> Clock:
        """Return a clock of this node, or the clock of that name, which several nodes share."""
        return self.task.clock(name or self.node.name)


class OperatorFactory(Protocol):
    def __call__(self, behavior: Value, context: OperatorContext, /) -> Process: ...
