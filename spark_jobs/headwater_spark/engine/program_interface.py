"""What a task uses of its sub-topology: nodes, topic names, serdes, expressions, partitioners.

`headwater_spark.engine.program` builds programs from compiled applications; tests have their own.
"""

from collections.abc import Callable
from typing import Literal, Protocol

import attrs

from headwater.model.broker_defaults import LARGEST_REQUEST
from headwater.model.formats import Format
from headwater.model.nodes import Node, StateStore
from headwater_spark.engine.records import CurrentRecord, Value


class Serde(Protocol):
    """Serializer and deserializer of a format. No function is called with None: null stays null."""

    @property
    def serialize(self) -> Callable[[Value], bytes]: ...
    @property
    def deserialize(self) -> Callable[[bytes], Value]:
        """Raises ValueError, or a subclass, for bytes that are not valid in the format."""
        ...

    @property
    def equal(self) -> Callable[[Value, Value], bool]:
        """Return whether two values that are written in the format are equal in Java."""
        ...


Partition = Callable[[str, Value, bytes | None, Value], int | None]
"""(topic, key, key bytes, value) → partition; None = the default partitioner on the key bytes."""


@attrs.frozen
class EngineSettings:
    """The configs of the application that affect results, or the handling of records that fail."""

    cache_max_bytes: int = 10 * 1024 * 1024
    """`statestore.cache.max.bytes`; 0 = no cache: every update is forwarded."""
    stores_in_memory: bool = False
    """`default.dsl.store`, or `dsl.store.suppliers.class`: for stores of which the topology names no type."""
    on_bad_input: Literal["fail", "continue"] = "fail"
    """`deserialization.exception.handler`: `LogAndFail…` or `LogAndContinue…`."""
    on_processing_error: Literal["fail", "continue"] = "fail"
    """`processing.exception.handler`."""
    on_bad_output: Literal["fail", "continue"] = "fail"
    """`production.exception.handler`, for records that cannot be serialized or that the brokers refuse."""
    dead_letter_topic: str | None = None
    """`errors.dead.letter.queue.topic.name` (KIP-1034): receives skipped records."""
    emit_interval_ms: int = 1000
    """`__emit.interval.ms.kstreams.windowed.aggregation__`: wall-clock interval of emission on close."""
    largest_request: int = LARGEST_REQUEST
    """`max.request.size` of the producers, in bytes: a larger record is refused."""
    outer_join_interval_ms: int = 1000
    """`__emit.interval.ms.kstreams.outer.join.spurious.results.fix__`."""


class Program(Protocol):
    """A sub-topology, or the global nodes, ready to execute."""

    @property
    def name(self) -> str:
        """The id of the sub-topology."""
        ...

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes in declaration order, with `reads`, `behavior` and `writes` set."""
        ...

    @property
    def stores(self) -> tuple[StateStore, ...]:
        """The stores of the sub-topology with `keeps` set, and the global stores that its nodes read."""
        ...

    @property
    def application_id(self) -> str: ...
    @property
    def settings(self) -> EngineSettings: ...

    def processor_of_key(self, key: bytes) -> int | None:
        """Return the processor of a serialized record key (KIP-287); None = each partition has a task."""
        ...

    def source(self, topic: str) -> str:
        """Return the source node that reads a topic. Raises KeyError if none does."""
        ...

    def topic(self, sink: str) -> str | None:
        """Return the topic of a sink; None = its topic name extractor chooses."""
        ...

    def changelog(self, store: str) -> str | None:
        """Return the changelog topic that a store writes; None = it writes none."""
        ...

    def source_changelog(self, store: str) -> str | None:
        """Return the source topic from which a store is restored; None = none is."""
        ...

    def serde(self, wanted: Format | None, role: Literal["key", "value"]) -> Serde:
        """Return the serde of a format; None = the application's default for the role."""
        ...

    def expression(
        self, text: str, parameters: tuple[str, ...], current: CurrentRecord
    ) -> Callable[..., Value]:
        """Return a function of exactly these positional parameters.

        `topic`, `partition` and `offset` are read from `current.record`; so are `timestamp` and `headers`
        unless they are parameters.
        """
        ...

    def load(self, name: str) -> Value:
        """Return the object that `module:Class` names."""
        ...

    def partition(self, sink: str) -> Partition | None:
        """Return how the sink chooses partitions; None = the default partitioner on the key bytes."""
        ...
