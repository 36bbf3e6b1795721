"""The program of one sub-topology (implements `program_interface.Program`)."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal

import attrs

from headwater.compiler.java.patterns import JavaPattern
from headwater.model.behaviors import Format
from headwater.model.nodes import Node, SinkNode, StateStore
from headwater.model.topology import Application
from headwater_spark.engine.expressions import Compiled, compile_expression
from headwater_spark.engine.partitioners.static import LinearHash
from headwater_spark.engine.program import partitioning
from headwater_spark.engine.program.classes import load_class
from headwater_spark.engine.program.formats import Defaults
from headwater_spark.engine.program.partitioning import PartitionRule, SinkPartitioning
from headwater_spark.engine.program_interface import EngineSettings, Partition, Serde
from headwater_spark.engine.records import CurrentRecord, Value
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.serdes import SchemaOf, no_registry, serde_of

_WINDOW_BYTES = {"time": 8, "session": 16}


@attrs.frozen
class SubtopologyProgram:
    """A frozen value that the driver builds and sends to the workers.

    Topics have the names of the cluster; nodes and stores have undecorated names.

    Attributes:
        sources: Topic → source node.
        patterns: (Java regular expression, source node).
        sinks: Sink node → topic.
        changelogs: Store → changelog topic that it writes.
        source_changelogs: Store → source topic from which it is restored.
        schemas: Texts of schemas by `serdes.schema_key`.
        schema_of: Returns schemas of the schema registry by id. It is pickled with the program.
        counts: Topic → number of partitions, as far as known; partitioners use it.
        tasks: The number of tasks.
        processors: The processors, if the document declares their number and the sub-topology has state.
    """

    application: Application
    name: str
    nodes: tuple[Node, ...]
    stores: tuple[StateStore, ...]
    sources: Mapping[str, str]
    patterns: tuple[tuple[str, str], ...]
    sinks: Mapping[str, str]
    changelogs: Mapping[str, str]
    source_changelogs: Mapping[str, str]
    partitioning: Mapping[str, SinkPartitioning]
    settings: EngineSettings
    defaults: Defaults = Defaults()  # noqa: RUF009 - frozen
    schemas: Mapping[str, str] = attrs.field(factory=dict)
    schema_of: SchemaOf = no_registry
    counts: Mapping[str, int] = attrs.field(factory=dict)
    tasks: int = 0
    processors: Processors | None = None
    is_global: bool = False

    @property
    def has_state(self) -> bool:
        """Whether its tasks own stores; global stores belong to no task."""
        return not self.is_global and any(not store.is_global for store in self.stores)

    def with_counts(self, counts: Mapping[str, int]) -> "SubtopologyProgram":
        """Return the program with other partition counts: after an expansion, or when sinks are known."""
        return attrs.evolve(self, counts={**self.counts, **counts})

    def source(self, topic: str) -> str:
        """Return the source node that reads a topic. Raises KeyError if none does."""
        found = self.sources.get(topic)
        if found is None:
            found = next((node for pattern, node in self.patterns if _pattern(pattern).matches(topic)), None)
        if found is None:
            raise KeyError(topic)
        return found

    def topic(self, sink: str) -> str | None:
        return self.sinks.get(sink)

    @property
    def application_id(self) -> str:
        return self.application.id

    def processor_of_key(self, key: bytes) -> int | None:
        return None if self.processors is None else self.processors.owner_of_key(key)

    def source_changelog(self, store: str) -> str | None:
        return self.source_changelogs.get(store)

    def changelog(self, store: str) -> str | None:
        return self.changelogs.get(store)

    def serde(self, wanted: Format | None, role: Literal["key", "value"]) -> Serde:
        resolved = self.defaults.resolve(wanted, role)
        return serde_of(resolved, self.schemas, self.schema_of)

    def expression(
        self, text: str, parameters: tuple[str, ...], current: CurrentRecord
    ) -> Callable[..., Value]:
        return _compiled(text, parameters).bind(current)

    def load(self, name: str) -> Value:
        """Return the class. Raises ImportError if `name` is not `module:Class`, or there is no such class."""
        return load_class(name)

    def partition(self, sink: str) -> Partition | None:
        chosen = self.partitioning.get(sink, SinkPartitioning())
        match chosen.rule:
            case PartitionRule.DEFAULT:
                return None
            case PartitionRule.ANSWER:
                return partitioning.by_message(self.processors, self.counts)
            case PartitionRule.INNER_KEY:
                return partitioning.by_inner_key(self.counts, self._window_bytes(sink))
        name = chosen.partitioner or ""
        made: Value = self.load(name)() if ":" in name else partitioning.configured(name, self.application)
        if isinstance(made, LinearHash):
            return partitioning.by_linear_hash(made, self.counts, self._window_bytes(sink))
        if chosen.rule is PartitionRule.STATIC:
            return partitioning.by_static(made, self.counts)
        return partitioning.by_custom(made, self.counts)

    def _window_bytes(self, sink: str) -> int:
        node = next(node for node in self.nodes if node.name == sink)
        key = node.writes.format.key if isinstance(node, SinkNode) and node.writes is not None else None
        return _WINDOW_BYTES[key.window] if key is not None and key.window is not None else 0


@lru_cache(maxsize=1024)
def _pattern(pattern: str) -> JavaPattern:
    return JavaPattern(pattern)


@lru_cache(maxsize=8192)
def _compiled(text: str, parameters: tuple[str, ...]) -> Compiled:
    return compile_expression(text, parameters)
