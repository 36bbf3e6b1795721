"""An application on the topics that exist at present: what each query reads, and with which programs."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from hashlib import blake2b

import attrs

from headwater.compiler.java.patterns import JavaPattern
from headwater.model.behaviors import RunProcessor, TableTransformValues
from headwater.model.compiled import Backend, CompiledApplication
from headwater.model.nodes import ProcessorNode, SourceNode
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program.config_support import main_consumer_config
from headwater_spark.engine.records import TopicPartition
from headwater_spark.engine.scaling.processors import Processors

Programs = Callable[[CompiledApplication], tuple[SubtopologyProgram, ...]]
"""Returns the programs of the sub-topologies."""
_OFFSET_RESET = "auto.offset.reset"
_BY_DURATION = "by_duration:"
_DURATION = re.compile(
    r"P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)


class ResetKind(Enum):
    """The values of `auto.offset.reset`, without the duration."""

    EARLIEST = "earliest"
    LATEST = "latest"
    NONE = "none"
    BY_DURATION = "by_duration"


@attrs.frozen
class OffsetReset:
    """Where reading starts without a committed offset (`auto.offset.reset`, KIP-1106).

    `duration_ms` is the time before now; for BY_DURATION only.
    """

    kind: ResetKind
    duration_ms: int = 0

    @classmethod
    def parse(cls, text: str) -> "OffsetReset":
        """Return the policy of a config value; raises `ValueError`."""
        lowered = text.strip().lower()
        if lowered.startswith(_BY_DURATION):
            return cls(ResetKind.BY_DURATION, _parse_milliseconds(text.strip()[len(_BY_DURATION) :]))
        return cls(ResetKind(lowered))


_FIRST = OffsetReset(ResetKind.EARLIEST)


@attrs.frozen(kw_only=True)
class QueryInput:
    """The input of one sub-topology: topic names, and patterns (Java regular expressions) not yet matched.

    `ticks`: the sub-topology has processors, which may schedule wall-clock punctuation.
    """

    topics: tuple[str, ...]
    patterns: tuple[str, ...]
    """They match no topic of a global table."""
    resets: Mapping[str, OffsetReset]
    """Source node → policy."""
    ticks: bool


def query_input(program: SubtopologyProgram, global_topics: Iterable[str] = ()) -> QueryInput:
    """Return what a program reads, without global topics; raises `ValueError` for an invalid reset policy."""
    excluded = "|".join(map(re.escape, sorted(global_topics)))
    other_topic = f"(?!(?:{excluded})$)" if excluded else ""
    default = main_consumer_config(program.application.config, _OFFSET_RESET, "earliest")
    return QueryInput(
        topics=tuple(sorted(program.sources)),
        patterns=tuple(
            f"{other_topic}(?:{pattern})" if other_topic else pattern for pattern, _ in program.patterns
        ),
        resets={
            node.name: OffsetReset.parse((node.reads.offset_reset if node.reads else None) or default)
            for node in program.nodes
            if isinstance(node, SourceNode)
        },
        ticks=any(
            isinstance(node, ProcessorNode) and isinstance(node.behavior, RunProcessor | TableTransformValues)
            for node in program.nodes
        ),
    )


@attrs.frozen(kw_only=True)
class Layout:
    """The programs and inputs of an application; replaced as a whole when topics change.

    `version` counts the replacements. `partition_counts` is topic → number of partitions, `topic_ids` topic →
    id. `programs` and `inputs` have the names of sub-topologies as keys. Spark SQL evaluates those in
    `native`. `processors` is sub-topology → its processors (KIP-287), of stateful ones if the document
    declares their number; the others have a task for each partition.
    """

    version: int = 0
    partition_counts: Mapping[str, int] = attrs.field(factory=dict)
    topic_ids: Mapping[str, str] = attrs.field(factory=dict)
    programs: Mapping[str, SubtopologyProgram] = attrs.field(factory=dict)
    inputs: Mapping[str, QueryInput] = attrs.field(factory=dict)
    repartition_topics: frozenset[str] = frozenset()
    native: frozenset[str] = frozenset()
    processors: Mapping[str, Processors] = attrs.field(factory=dict)

    def updated(
        self,
        compiled: CompiledApplication,
        programs: Iterable[SubtopologyProgram],
        partition_counts: Mapping[str, int],
        topic_ids: Mapping[str, str],
    ) -> "Layout":
        """Return the next version of this layout."""
        counted = [program.with_counts(partition_counts) for program in programs]
        parts = compiled.subtopologies
        of_global = {topic for program in counted if program.is_global for topic in program.sources}
        return Layout(
            version=self.version + 1,
            partition_counts=partition_counts,
            topic_ids=topic_ids,
            programs={program.name: program for program in counted},
            inputs={program.name: query_input(program, of_global) for program in counted},
            repartition_topics=frozenset(topic for part in parts for topic in part.repartition_topics),
            native=frozenset(str(part.id) for part in parts if part.backend is Backend.NATIVE),
            processors={
                program.name: _with_recorded_count(program, program.processors, partition_counts)
                for program in counted
                if program.has_state and program.processors is not None
            },
        )

    @property
    def global_programs(self) -> tuple[SubtopologyProgram, ...]:
        return tuple(program for program in self.programs.values() if program.is_global)

    @property
    def queries(self) -> tuple[str, ...]:
        """The sub-topologies that have a query; all tasks read the global ones in addition."""
        return tuple(name for name, program in self.programs.items() if not program.is_global)

    def topics(self, name: str) -> tuple[str, ...]:
        """Return the existing topics that a query reads."""
        input_ = self.inputs[name]
        patterns = [JavaPattern(pattern) for pattern in input_.patterns]
        matching = {topic for topic in self.partition_counts if any(each.matches(topic) for each in patterns)}
        return tuple(sorted({topic for topic in input_.topics if topic in self.partition_counts} | matching))

    def topic_partitions(self, topics: Collection[str]) -> list[TopicPartition]:
        return [
            (topic, each) for topic in sorted(topics) for each in range(self.partition_counts.get(topic, 0))
        ]

    def offset_resets(self, name: str) -> Mapping[TopicPartition, OffsetReset]:
        """Return where a query starts in partitions without a committed offset."""
        program, input_ = self.programs[name], self.inputs[name]
        return {
            (topic, partition): _FIRST
            if self._is_added(name, partition)
            else input_.resets[program.source(topic)]
            for topic, partition in self.topic_partitions(self.topics(name))
        }

    def parallelism(self, name: str) -> int:
        """Return the number of tasks of a query."""
        widest = max((self.partition_counts[topic] for topic in self.topics(name)), default=0)
        return min(widest, self.processors[name].count) if name in self.processors else widest

    def is_expanded(self, name: str) -> bool:
        """Return whether a task of a query has several partitions of a topic."""
        return any(self._is_added(name, partition) for _, partition in self.input_partitions(name))

    def input_partitions(self, name: str) -> list[TopicPartition]:
        """Return all partitions that a query reads."""
        return self.topic_partitions(self.topics(name))

    def own_partitions(self) -> list[TopicPartition]:
        """Return the partitions that queries read and tasks of the application write."""
        read = {topic for name in self.queries for topic in self.topics(name)}
        written = {topic for program in self.programs.values() for topic in program.sinks.values()}
        return self.topic_partitions(read & written)

    def _is_added(self, name: str, partition: int) -> bool:
        """Return whether a partition has keys that earlier partitions had before: none of it is skipped."""
        processors = self.processors.get(name)
        return processors is not None and partition >= processors.initial

    def task_partition_counts(self, name: str) -> Mapping[str, int]:
        """Return topic → number of partitions for all topics that a query's tasks read, also global ones."""
        global_topics = {topic for program in self.global_programs for topic in program.sources}
        read = sorted({*self.topics(name), *global_topics})
        return {topic: self.partition_counts[topic] for topic in read if topic in self.partition_counts}

    def topic_digest(self, name: str) -> str:
        """Return a digest of the ids of a query's source topics; it changes when one is re-created."""
        ids = " ".join(self.topic_ids.get(topic, "") for topic in self.inputs[name].topics)
        return blake2b(ids.encode(), digest_size=4).hexdigest()


def _with_recorded_count(
    program: SubtopologyProgram, processors: Processors, partition_counts: Mapping[str, int]
) -> Processors:
    """Return `processors`, whose number is committed with offsets if the changelog topics do not show it."""
    counts = (partition_counts.get(topic, 0) for topic in program.changelogs.values())
    return attrs.evolve(processors, is_recorded=any(count > processors.count for count in counts))


def _parse_milliseconds(text: str) -> int:
    match = _DURATION.fullmatch(text.upper())
    if match is None or not any(match.groups()):
        raise ValueError(f"{text!r} is not an ISO-8601 duration")
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)
