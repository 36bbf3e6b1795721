"""What a task needs to know of its sub-topology: nodes, names on the cluster, formats, functions.

`spark_jobs.runtime.engine.program` makes these from a compiled application; tests make their own.
"""

from collections.abc import Callable
from typing import Literal, Protocol

import attrs

from infra.model.behaviors import Format
from infra.model.nodes import Node, StateStore
from spark_jobs.runtime.engine.records import Ambient, Value


class Serde(Protocol):
    """Bytes to values and back. Neither function is called with None: null stays null."""

    @property
    def serialize(self) -> Callable[[Value], bytes]: ...
    @property
    def deserialize(self) -> Callable[[bytes], Value]:
        """Raises ValueError (or a subclass) for bytes that are not of the format."""
        ...


Partition = Callable[[str, Value, bytes | None, Value], int | None]
"""(topic, key, key bytes, value) → partition; None = the default partitioner over the key's bytes."""


@attrs.frozen
class EngineSettings:
    """The application's configs that change results or what happens to records that cannot be handled."""

    cache_max_bytes: int = 10 * 1024 * 1024
    """`statestore.cache.max.bytes`; 0 = each record's update is forwarded."""
    on_bad_input: Literal["fail", "continue"] = "fail"
    """`deserialization.exception.handler`: LogAndFail, LogAndContinue."""
    on_processing_error: Literal["fail", "continue"] = "fail"
    """`processing.exception.handler`."""
    on_bad_output: Literal["fail", "continue"] = "fail"
    """`production.exception.handler`, for records that cannot be serialized."""
    dead_letter_topic: str | None = None
    """`errors.dead.letter.queue.topic.name` (KIP-1034): where skipped records go, too."""
    emit_interval_ms: int = 1000
    """`__emit.interval.ms.kstreams.windowed.aggregation__`: wall-clock pause between emissions on close."""
    outer_join_interval_ms: int = 1000
    """`__emit.interval.ms.kstreams.outer.join.spurious.results.fix__`."""


class Program(Protocol):
    """One sub-topology (or the global nodes) as it runs."""

    @property
    def name(self) -> str:
        """The sub-topology's id."""
        ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """In declaration order, with `reads`, `behavior` and `writes` set."""
        ...

    @property
    def stores(self) -> tuple[StateStore, ...]:
        """Those of the sub-topology with `keeps` set, and the global ones that its nodes read."""
        ...

    @property
    def application_id(self) -> str: ...
    @property
    def settings(self) -> EngineSettings: ...

    def source(self, topic: str) -> str:
        """The source node that reads a topic of the cluster."""
        ...

    def topic(self, sink: str) -> str | None:
        """The sink's topic on the cluster; None = its extractor says."""
        ...

    def changelog(self, store: str) -> str | None:
        """The topic on the cluster that a store writes to; None = not logged, or its source is it."""
        ...

    def source_changelog(self, store: str) -> str | None:
        """The source topic on the cluster that is a store's changelog; None = no such."""
        ...

    def serde(self, wanted: Format | None, role: Literal["key", "value"]) -> Serde:
        """The serde of a format; None = the application's default for the role."""
        ...

    def expression(self, text: str, parameters: tuple[str, ...], ambient: Ambient) -> Callable[..., Value]:
        """A function of exactly these positional parameters.

        `topic`, `partition` and `offset` (and `timestamp`, `headers` where they are no parameters) are read
        from `ambient.record`.
        """
        ...

    def load(self, name: str) -> Value:
        """What `module:Class` names."""
        ...

    def partition(self, sink: str) -> Partition | None:
        """How the sink chooses partitions; None = the default partitioner over the key's bytes."""
        ...
