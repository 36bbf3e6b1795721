"""Runs topologies on the engine alone: documents as YAML, expressions as Python, one partition a topic."""

from collections.abc import Callable, Mapping
from functools import cache, cached_property, lru_cache
from importlib import import_module
from itertools import count
from types import CodeType
from typing import Any, Literal

import attrs

from headwater.compiler import build_nodes
from headwater.compiler.topic_groups import NodeGroup, node_groups
from headwater.model.formats import DEFAULT_FORMAT, Format
from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode, StateStore
from headwater.model.problems import Severity
from headwater.spec import load_text
from headwater_spark.engine.program.settings import without_cache
from headwater_spark.engine.program_interface import EngineSettings, Partition, Serde
from headwater_spark.engine.records import CurrentRecord, Headers, InputRecord, OutputRecord
from headwater_spark.engine.serdes import serde_of
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from tests.yaml_text import dump_yaml, load_yaml

APPLICATION = "app"
CACHED = EngineSettings(emit_interval_ms=0)
NO_CACHE = without_cache(EngineSettings())


@attrs.frozen(slots=False)
class PythonProgram:
    """A `Program` whose expressions are Python; the topology has the names of internal topics."""

    group: NodeGroup
    topology: NodeTopology
    settings: EngineSettings
    classes: Mapping[str, Any] = attrs.field(factory=dict)
    application_id: str = APPLICATION

    @property
    def name(self) -> str:
        return str(self.group.id)

    @property
    def nodes(self) -> tuple[Node, ...]:
        return self.group.nodes

    @cached_property
    def stores(self) -> tuple[StateStore, ...]:
        used = dict.fromkeys(
            store for node in self.nodes if isinstance(node, ProcessorNode) for store in node.stores
        )
        known = {store.name: store for store in self.topology.stores}
        return tuple(known[name] for name in used)

    @cached_property
    def _internal(self) -> frozenset[str]:
        return frozenset(topic.name for topic in self.topology.repartition_topics)

    def decorated(self, topic: str) -> str:
        return f"{APPLICATION}-{topic}" if topic in self._internal else topic

    @cached_property
    def sources(self) -> Mapping[str, str]:
        return {
            self.decorated(topic): node.name
            for node in self.nodes
            if isinstance(node, SourceNode)
            for topic in node.topics
        }

    @staticmethod
    def processor_of_key(_key: bytes) -> int | None:
        return None

    def source(self, topic: str) -> str:
        return self.sources[topic]

    def topic(self, sink: str) -> str | None:
        topic = next(node.topic for node in self.nodes if isinstance(node, SinkNode) and node.name == sink)
        return None if topic is None else self.decorated(topic)

    def changelog(self, store: str) -> str | None:
        kept = next(kept for kept in self.topology.stores if kept.name == store)
        if not kept.logged or kept.changelog_topic is not None or kept.is_global:
            return None
        return f"{APPLICATION}-{store}-changelog"

    def source_changelog(self, store: str) -> str | None:
        return next(kept.changelog_topic for kept in self.topology.stores if kept.name == store)

    def serde(self, wanted: Format | None, role: Literal["key", "value"]) -> Serde:
        del role
        wanted = wanted or Format("string")
        name = "string" if wanted.name == DEFAULT_FORMAT else wanted.name
        return serde_of(attrs.evolve(wanted, name=name), {})

    def expression(
        self, text: str, parameters: tuple[str, ...], current: CurrentRecord
    ) -> Callable[..., Any]:
        made: Callable[..., Any] = eval(_code(text, parameters), {"current": current})  # noqa: S307
        return made

    def load(self, name: str) -> Any:  # noqa: ANN401
        if name in self.classes:
            return self.classes[name]
        module, _, path = name.partition(":")
        return getattr(import_module(module), path)

    def partition(self, sink: str) -> Partition | None:
        del sink
        return None


def programs(
    topology: str,
    settings: EngineSettings = NO_CACHE,
    classes: Mapping[str, Any] | None = None,
    config: Mapping[str, str] | None = None,
) -> tuple[PythonProgram, ...]:
    """The programs of the steps in YAML. Properties create tasks of the same ones for each example."""
    return _programs(topology, settings, tuple((classes or {}).items()), tuple((config or {}).items()))


@lru_cache(maxsize=500)
def _programs(
    topology: str,
    settings: EngineSettings,
    classes: tuple[tuple[str, Any], ...],
    config: tuple[tuple[str, str], ...],
) -> tuple[PythonProgram, ...]:
    nodes = _nodes(topology, config)
    return tuple(PythonProgram(group, nodes, settings, dict(classes)) for group in node_groups(nodes))


@cache
def _code(text: str, parameters: tuple[str, ...]) -> CodeType:
    return compile(f"lambda {', '.join(parameters)}: {text}", "<string>", "eval")


@cache
def _nodes(topology: str, config: tuple[tuple[str, str], ...]) -> NodeTopology:
    application = {"id": APPLICATION, "config": dict(config)}
    document = dump_yaml({"application": application, "topology": load_yaml(topology)})
    loaded = load_text(document, "test.yaml")
    assert not loaded.problems, loaded.problems
    nodes = build_nodes(loaded.documents[0])
    assert not [problem for problem in nodes.problems if problem.severity is Severity.ERROR], nodes.problems
    return nodes


class TopologyRunner:
    """Runs all tasks of an application; records of repartition topics are processed at once."""

    def __init__(
        self,
        topology: str,
        settings: EngineSettings = NO_CACHE,
        classes: Mapping[str, Any] | None = None,
        state: Callable[[], BatchedState] = MemoryState,
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.programs = programs(topology, settings, classes, config)
        self.states = {program.name: state() for program in self.programs}
        self._global = {
            program.name: Task(program, 0, self.states[program.name])
            for program in self.programs
            if program.group.is_global
        }
        self.global_stores = {
            name: store for task in self._global.values() for name, store in task.stores.items()
        }
        self.tasks = {
            program.name: self._global.get(program.name)
            or Task(program, 0, self.states[program.name], self.global_stores)
            for program in self.programs
        }
        self._readers = {topic: program.name for program in self.programs for topic in program.sources}
        self._offsets: dict[str, count[int]] = {}
        self.wall = 0
        self.all_outputs: list[OutputRecord] = []

    def reopen(self) -> None:
        """Create new tasks on the same states, as a new worker does."""
        for program in self.programs:
            if not program.group.is_global:
                self.tasks[program.name] = Task(program, 0, self.states[program.name], self.global_stores)

    def record(
        self, topic: str, key: bytes | None, value: bytes | None, timestamp: int, headers: Headers = ()
    ) -> InputRecord:
        offset = next(self._offsets.setdefault(topic, count()))
        return (topic, 0, offset, timestamp, key, value, headers)

    def skip(self, topic: str, records: int) -> None:
        """Set the offset of the topic's next record."""
        self._offsets[topic] = count(records)

    def feed(self, *records: InputRecord) -> list[OutputRecord]:
        """Process one batch per sub-topology with records; return all records that they write."""
        pending: dict[str, list[InputRecord]] = {}
        for record in records:
            pending.setdefault(self._readers[record[0]], []).append(record)
        seen: list[OutputRecord] = []
        while pending:
            name = next(iter(pending))
            for output in self._batch(name, pending.pop(name)):
                topic, _, key, value, timestamp, headers = output
                seen.append(output)
                if topic in self._readers:
                    forwarded = self.record(topic, key, value, timestamp, headers)
                    pending.setdefault(self._readers[topic], []).append(forwarded)
        self.all_outputs += seen
        return seen

    def advance_wall_clock(self, milliseconds: int) -> list[OutputRecord]:
        self.wall += milliseconds
        return [output for name in self.tasks for output in self._batch(name, [])]

    def _batch(self, name: str, records: list[InputRecord]) -> list[OutputRecord]:
        outputs = self.tasks[name].process(records, self.wall)
        state = self.states[name]
        state.commit(state.version)
        return outputs
