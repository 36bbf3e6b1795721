"""How an operator is built and called.

An operator is a function made once for each node of a task: `build(behavior, context) -> Process`.
Calling it with (key, value, timestamp, headers) handles one record; it hands results on by calling
`context.forward`, which is the only child's own function or calls all children, depth first, in declaration
order. Tables' operators get a `Change` as value.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

import attrs

from infra.model.behaviors import Format
from infra.model.nodes import ProcessorNode
from spark_jobs.processors import Cancellable, PunctuationType
from spark_jobs.runtime.engine.key_counts import AddCount
from spark_jobs.runtime.engine.program_interface import EngineSettings, Program, Serde
from spark_jobs.runtime.engine.records import Ambient, Headers, Value
from spark_jobs.runtime.engine.stores.clock import Clock
from spark_jobs.runtime.engine.stores.layers import Append

Process = Callable[[Value, Value, int, Headers], None]
"""(key, value, timestamp, headers)"""

ValueGetter = Callable[[Value], tuple[Value, int] | None]
"""A table's key → its current (value, timestamp); None = nothing there (`KTableValueGetter`).

`operators.views.value_getter(view, context)` makes one of a `TableView`.
"""

StoreType = TypeVar("StoreType")


class NotRunnableError(Exception):
    """The document says where data flows but not what a node does with it."""


class TaskServices(Protocol):
    """What the task does for its operators."""

    program: Program
    partition: int
    append: Append
    ambient: Ambient
    stream_time: Clock
    """The largest timestamp of the task's input."""
    task_id: str

    @property
    def application_id(self) -> str: ...
    def wall_clock(self) -> int:
        """Milliseconds; the same for a whole batch."""
        ...

    def is_global_store(self, name: str) -> bool: ...
    def typed_store(self, name: str) -> Value:
        """The store as its `keeps.kind` says: see `stores.interfaces`."""
        ...

    def clock(self, name: str) -> Clock: ...

    def schedule(
        self,
        node: str,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
    ) -> Cancellable: ...

    def on_open(self, node: str, start: Callable[[], None]) -> None:
        """Called when all nodes are built; parents' before children's."""
        ...

    def on_batch_end(self, finish: Callable[[], None]) -> None:
        """Called when a batch's records are worked off, before caches are flushed."""
        ...

    def on_close(self, close: Callable[[], None]) -> None: ...

    def on_key_counts(self, node: str, add_count: AddCount) -> None:
        """Call `add_count` once per key of a batch, if possible, not the node per record (`key_counts`)."""
        ...

    def drop(self, node: str, reason: str) -> None:
        """Counts a dropped record (`dropped-records-total`)."""
        ...


@attrs.frozen
class OperatorContext:
    """A node's view of its task while its operator is built, and afterwards."""

    node: ProcessorNode
    children: Mapping[str, Process]
    """In declaration order."""
    forward: Process
    task: TaskServices

    @property
    def settings(self) -> EngineSettings:
        return self.task.program.settings

    def expression(self, text: str | None, *parameters: str) -> Callable[..., Value]:
        """A function of the parameters.

        Raises:
            NotRunnableError: The document does not say.
        """
        if text is None:
            message = (
                f"{self.node.name} has no expression: the document does not say what is done to a record"
            )
            raise NotRunnableError(message)
        return self.task.program.expression(text, parameters, self.task.ambient)

    def key_serde(self, wanted: Format | None) -> Serde:
        return self.task.program.serde(wanted, "key")

    def value_serde(self, wanted: Format | None) -> Serde:
        return self.task.program.serde(wanted, "value")

    def store(self, name: str, kind: type[StoreType]) -> StoreType:
        """The typed store; `kind` is for the reader and the type checker, it is not converted."""
        del kind
        store: StoreType = self.task.typed_store(name)
        return store

    def clock(self, name: str = "") -> Clock:
        """A time of this node's own, or with a name one that several nodes share."""
        return self.task.clock(name or self.node.name)


class OperatorFactory(Protocol):
    def __call__(self, behavior: Value, context: OperatorContext, /) -> Process: ...
