"""Build one program per sub-topology."""

from collections.abc import Iterator, Mapping

from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.topic_groups import Naming, NodeGroup, node_groups
from headwater.model.behaviors import RunProcessor, StreamGlobalJoin, TableTransformValues
from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import NodeTopology, ProcessorNode, SinkNode, SourceNode, StateStore
from headwater.model.topology import TopologyDocument
from headwater_spark.engine.program.formats import Defaults
from headwater_spark.engine.program.partitioning import partitioning_of
from headwater_spark.engine.program.program import SubtopologyProgram
from headwater_spark.engine.program.settings import engine_settings, global_settings
from headwater_spark.engine.scaling.processors import processors_of
from headwater_spark.engine.serdes import SchemaOf, no_registry


def build_programs(
    document: TopologyDocument,
    nodes: NodeTopology,
    compiled: CompiledApplication,
    schemas: Mapping[str, str] | None = None,
    schema_of: SchemaOf = no_registry,
) -> tuple[SubtopologyProgram, ...]:
    """Return the programs of all sub-topologies, global nodes included. `problems_of` finds what cannot run.

    Args:
        document: The topology document, for its config.
        nodes: `build_nodes(document)`.
        compiled: The compiled document: sub-topology ids, numbers of tasks, partition counts.
        schemas: Texts of schemas by `serdes.schema_key`.
        schema_of: Returns schemas of the schema registry by id. Workers call it: it must be picklable.
    """
    building = _Building(document, nodes, compiled, schemas or {}, schema_of)
    return tuple(building.program(group) for group in node_groups(nodes))


class _Building:
    def __init__(
        self,
        document: TopologyDocument,
        nodes: NodeTopology,
        compiled: CompiledApplication,
        schemas: Mapping[str, str],
        schema_of: SchemaOf,
    ) -> None:
        self._application = document.application
        config = StreamsConfig.of(document.application)
        self._naming = Naming.of(nodes, config.topic_prefix or document.application.id)
        self._stores = {store.name: store for store in nodes.stores}
        self._settings = engine_settings(document.application.config)
        self._defaults = Defaults.of(document.application.config)
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
