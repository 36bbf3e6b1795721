"""The program of one sub-topology (implements `program_interface.Program`), and how it is built."""

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Literal

import attrs

from headwater.compiler.java.patterns import JavaPattern
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.topic_groups import Naming, NodeGroup, node_groups
from headwater.model.behaviors import RunProcessor, StreamGlobalJoin, TableTransformValues
from headwater.model.compiled import CompiledApplication
from headwater.model.formats import Format
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode, StateStore
from headwater.model.topology import Application, TopologyDocument
from headwater_spark.engine.expressions import Compiled, compile_expression
from headwater_spark.engine.partitioners.hashing import InnerKeyPartition
from headwater_spark.engine.partitioners.static import LinearHash
from headwater_spark.engine.program import partitioning
from headwater_spark.engine.program.formats import Defaults
from headwater_spark.engine.program.partitioning import PartitionRule, SinkPartitioning, partitioning_of
from headwater_spark.engine.program.settings import engine_settings, global_settings
from headwater_spark.engine.program.user_code import load_class
from headwater_spark.engine.program_interface import EngineSettings, Partition, Serde
from headwater_spark.engine.records import CurrentRecord, Value
from headwater_spark.engine.scaling.processors import Processors, processors_of
from headwater_spark.engine.serdes import ReportUnread, SchemaOf, no_registry, report_nothing, serde_of

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
        report_unread: Is called with fields of another schema version that are not read. Pickled, too.
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
    report_unread: ReportUnread = report_nothing
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
        found = self._find_source(topic)
        if found is None:
            raise KeyError(topic)
        return found

    def reads(self, topic: str) -> bool:
        """Return whether a source node reads a topic, by its name or by a pattern."""
        return self._find_source(topic) is not None

    def _find_source(self, topic: str) -> str | None:
        found = self.sources.get(topic)
        if found is not None:
            return found
        return next(
            (node for pattern, node in self.patterns if _compile_pattern(pattern).matches(topic)), None
        )

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
        return serde_of(resolved, self.schemas, self.schema_of, self.report_unread)

    def expression(
        self, text: str, parameters: tuple[str, ...], current: CurrentRecord
    ) -> Callable[..., Value]:
        return _compile_text(text, parameters).bind(current)

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
                return InnerKeyPartition(self.counts, self._window_bytes(sink))
        name = chosen.partitioner or ""
        made: Value = (
            self.load(name)() if ":" in name else partitioning.configured_partitioner(name, self.application)
        )
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
def _compile_pattern(pattern: str) -> JavaPattern:
    return JavaPattern(pattern)


@lru_cache(maxsize=8192)
def _compile_text(text: str, parameters: tuple[str, ...]) -> Compiled:
    return compile_expression(text, parameters)


def build_programs(
    document: TopologyDocument,
    nodes: NodeTopology,
    compiled: CompiledApplication,
    schemas: Mapping[str, str] | None = None,
    schema_of: SchemaOf = no_registry,
    *,
    report_unread: ReportUnread = report_nothing,
) -> tuple[SubtopologyProgram, ...]:
    """Return the programs of all sub-topologies, global nodes included. `problems_of` finds what cannot run.

    Args:
        document: The topology document, for its config.
        nodes: `build_nodes(document)`.
        compiled: The compiled document: sub-topology ids, numbers of tasks, partition counts.
        schemas: Texts of schemas by `serdes.schema_key`.
        schema_of: Returns schemas of the schema registry by id. Workers call it: it must be picklable.
        report_unread: Is called with fields of another schema version that are not read; the same holds.
    """
    building = _ProgramBuilder(document, nodes, compiled, schemas or {}, schema_of)
    return tuple(
        attrs.evolve(building.program(group), report_unread=report_unread) for group in node_groups(nodes)
    )


class _ProgramBuilder:
    """What the programs of an application share; builds the program of one sub-topology."""

    def __init__(
        self,
        document: TopologyDocument,
        nodes: NodeTopology,
        compiled: CompiledApplication,
        schemas: Mapping[str, str],
        schema_of: SchemaOf,
    ) -> None:
        self._application = document.application
        config = StreamsConfig.from_application(document.application)
        self._naming = Naming.from_topology(nodes, config.topic_prefix or document.application.id)
        self._stores = {store.name: store for store in nodes.stores}
        self._settings = engine_settings(document.application.config)
        self._defaults = Defaults.from_config(document.application.config)
        self._tasks = {part.id: part.tasks for part in compiled.subtopologies}
        self._processors = {
            part.id: processors_of(compiled.application, part.source_partitions.values())
            for part in compiled.subtopologies
            if part.processors is not None
        }
        self._counts = {topic.name: topic.partitions for topic in compiled.internal_topics} | {
            sink.topic: sink.partitions for sink in compiled.sinks if sink.partitions is not None
        }
        self._schemas = schemas
        self._schema_of = schema_of

    def program(self, group: NodeGroup) -> SubtopologyProgram:
        sources = [node for node in group.nodes if isinstance(node, SourceNode)]
        sinks = [node for node in group.nodes if isinstance(node, SinkNode)]
        processors = [node for node in group.nodes if isinstance(node, ProcessorNode)]
        stores = tuple(dict.fromkeys(self._stores_of(processors)))
        read = {topic: node.name for node in sources for topic in map(self._naming.topic, node.topics)}
        return SubtopologyProgram(
            application=self._application,
            name=str(group.id),
            nodes=group.nodes,
            stores=tuple(self._stores[name] for name in stores),
            sources=read,
            patterns=tuple((node.pattern, node.name) for node in sources if node.pattern is not None),
            sinks={node.name: self._naming.topic(node.topic) for node in sinks if node.topic is not None},
            changelogs={
                name: self._naming.changelog(name)
                for name in stores
                if self._owns_changelog(self._stores[name], processors)
            },
            source_changelogs={
                name: topic for name in stores if (topic := self._stores[name].changelog_topic) is not None
            },
            partitioning={
                node.name: partitioning_of(
                    node.writes, self._application, internal=node.topic in self._naming.internal
                )
                for node in sinks
            },
            settings=(
                global_settings(self._settings, self._application) if group.is_global else self._settings
            ),
            defaults=self._defaults,
            schemas=self._schemas,
            schema_of=self._schema_of,
            counts=self._counts,
            tasks=self._tasks.get(group.id, 0),
            processors=self._processors.get(group.id),
            is_global=group.is_global,
        )

    def _stores_of(self, processors: list[ProcessorNode]) -> Iterator[str]:
        """Yield stores of the processors, then global stores: users' classes may read any."""
        for node in processors:
            yield from (name for name in node.stores if name in self._stores)
        for node in processors:
            if isinstance(node.behavior, StreamGlobalJoin):
                yield node.behavior.store
            elif isinstance(node.behavior, RunProcessor | TableTransformValues):
                yield from (store.name for store in self._stores.values() if store.is_global)

    @staticmethod
    def _owns_changelog(store: StateStore, processors: list[ProcessorNode]) -> bool:
        """If a store was added more than once, only the last set of processors logs."""
        if not store.logged or store.is_global:
            return False
        names = {node.name for node in processors}
        return not store.connections or not names.isdisjoint(store.connections[-1])
