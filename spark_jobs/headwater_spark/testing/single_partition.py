"""Run the programs of a document record by record: each topic has one partition.

A record is processed to the end before the next record. The next record is the queued record with the
smallest timestamp, and each record is a batch of its own. `Sinks` reads what the programs have written, and
`GivenSchemas` has the schemas of registered formats.
"""

import json
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import count
from typing import Any, Self

import attrs

from headwater.compiler import compile_document
from headwater.compiler.java.collections import JavaQueue
from headwater.model.formats import Format
from headwater.model.nodes import NodeTopology, SinkNode, SourceNode
from headwater.model.problems import Problem, ProblemCode, ProblemsError
from headwater.model.topology import Application, TopologyDocument
from headwater_spark.driver.preflight import RunnableDocument, compiler_missing
from headwater_spark.engine.program import SubtopologyProgram, build_programs
from headwater_spark.engine.program.settings import global_settings
from headwater_spark.engine.program_interface import EngineSettings, Serde
from headwater_spark.engine.records import Headers, InputRecord, OutputRecord
from headwater_spark.engine.serdes import (
    CompilerUnavailableError,
    SchemaOf,
    no_registry,
    schema_subject,
    schema_type,
)
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.engine.task import Task
from headwater_spark.processors import Record
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.protobuf_schemas import compile_schema


@attrs.frozen
class Sinks:
    """The topics that an application writes, and the formats of their records.

    Attributes:
        sinks: The sinks of topics of users, each with its program and its topic; None = chosen by record.
        bytes_topics: Internal topics, and the dead letter topic.
    """

    sinks: tuple[tuple[SubtopologyProgram, SinkNode, str | None], ...]
    bytes_topics: frozenset[str]

    @classmethod
    def from_programs(
        cls,
        programs: Iterable[SubtopologyProgram],
        runnable: RunnableDocument,
        dead_letters: str | None,
    ) -> Self:
        repartition = {topic.name for topic in runnable.nodes.repartition_topics}
        programs = tuple(programs)
        sinks = [
            (program, node, program.topic(node.name))
            for program in programs
            for node in program.nodes
            if isinstance(node, SinkNode)
        ]
        changelogs = {topic for program in programs for topic in program.changelogs.values()}
        internal = {topic for _, node, topic in sinks if topic is not None and node.topic in repartition}
        others = set() if dead_letters is None else {dead_letters}
        users = tuple(each for each in sinks if each[1].topic not in repartition)
        return cls(users, frozenset(changelogs | internal | others))

    def check(self, topic: str) -> None:
        """Raise KeyError if the application never writes the topic."""
        written = {topic for _, _, topic in self.sinks}
        if None not in written and topic not in written | self.bytes_topics:
            topics = self.bytes_topics | {each for each in written if each is not None}
            raise KeyError(f"the topology does not write {topic}; {list_names('it writes', topics)}")

    def to_record(self, record: OutputRecord) -> Record:
        topic, _, key, value, timestamp, headers = record
        serdes = self._serdes(topic)
        if serdes is None:
            return Record(key, value, timestamp, headers)
        read_key, read_value = serdes[0].deserialize, serdes[1].deserialize
        return Record(
            None if key is None else read_key(key),
            None if value is None else read_value(value),
            timestamp,
            headers,
        )

    def _serdes(self, topic: str) -> tuple[Serde, Serde] | None:
        """Return the serdes of a topic's records; None = they are bytes."""
        if topic in self.bytes_topics:
            return None
        found = [each for each in self.sinks if each[2] == topic]
        found = found or [each for each in self.sinks if each[2] is None]
        if len({_sink_formats(program, sink) for program, sink, _ in found}) != 1:
            return None
        program, sink, _ = found[0]
        return serdes_of(sink.writes, program)


def _sink_formats(program: SubtopologyProgram, sink: SinkNode) -> tuple[Format, Format]:
    written = None if sink.writes is None else sink.writes.format
    key, value = (None, None) if written is None else (written.key, written.value)
    return program.defaults.resolve(key, "key"), program.defaults.resolve(value, "value")


def list_names(what: str, names: Iterable[str]) -> str:
    return f"{what}: {', '.join(sorted(names)) or 'none'}"


Bytes = bytes | None


def build_single_partition_programs(
    document: TopologyDocument,
    nodes: NodeTopology,
    *,
    settings: EngineSettings,
    topics: Iterable[str] = (),
    schemas: Mapping[str, str] | None = None,
    schema_of: SchemaOf = no_registry,
) -> tuple[SubtopologyProgram, ...]:
    """Return the programs of a document where each topic has one partition.

    Args:
        document: It can run: `problems_of` finds nothing.
        nodes: `build_nodes(document)`.
        settings: The settings of all programs.
        topics: More topics of users: patterns match them, and no node names them.
        schemas: Texts of schemas by `serdes.schema_key`.
        schema_of: Returns schemas of the schema registry by id.
    """
    known = {t for node in nodes.nodes if isinstance(node, SourceNode) for t in node.topics} | set(topics)
    compiled = compile_document(document, dict.fromkeys(known, 1))
    programs = build_programs(document, nodes, compiled, schemas, schema_of)
    counts = dict.fromkeys((topic for program in programs for topic in program.sinks.values()), 1)
    of_global = global_settings(settings, document.application)
    return tuple(
        attrs.evolve(program, settings=of_global if program.is_global else settings).with_counts(counts)
        for program in programs
    )


def open_tasks(programs: Iterable[SubtopologyProgram], states: Mapping[str, MemoryState]) -> dict[str, Task]:
    """Return program → its task 0 on its state; the tasks read the stores of global programs."""
    tasks: dict[str, Task] = {}
    global_stores: dict[str, Any] = {}
    for program in sorted(programs, key=lambda each: not each.is_global):
        task = tasks[program.name] = Task(program, 0, states[program.name], global_stores)
        if program.is_global:
            global_stores |= task.stores
    return tasks


class SinglePartitionRunner:
    """Runs all tasks of an application, and returns every record that they write, in order."""

    def __init__(self, programs: Iterable[SubtopologyProgram]) -> None:
        self.programs = tuple(programs)
        self._states = {program.name: MemoryState() for program in self.programs}
        self.tasks = open_tasks(self.programs, self._states)
        self._changelogs = {topic for program in self.programs for topic in program.changelogs.values()}
        self._reader_by_topic: dict[str, SubtopologyProgram | None] = {}
        self._offsets: defaultdict[str, count[int]] = defaultdict(count)
        self._queues: defaultdict[str, deque[OutputRecord]] = defaultdict(deque)
        self._topics = JavaQueue[str](lambda topic: self._queues[topic][0][4])
        """The topics with queued records."""

    def pipe(
        self,
        topic: str,
        key: Bytes,
        value: Bytes,
        timestamp: int,
        *,
        wall_clock_ms: int = 0,
        headers: Headers = (),
    ) -> list[OutputRecord]:
        """Process one record of a topic; return all records written, changelogs included.

        Raises:
            KeyError: No program reads the topic.
        """
        self.reader(topic)
        self._enqueue((topic, None, key, value, timestamp, headers))
        return self._run(wall_clock_ms)

    def advance_wall_clock(self, wall_clock_ms: int) -> list[OutputRecord]:
        """Run the punctuations that are due at this time; return all records written."""
        written: list[OutputRecord] = []
        for name in self.tasks:
            written += self._process_batch(name, [], wall_clock_ms)
        return [*written, *self._run(wall_clock_ms)]

    def reader(self, topic: str) -> SubtopologyProgram:
        """Return the program that reads a topic. Patterns match neither repartition nor changelog topics.

        Raises:
            KeyError: No program reads the topic.
        """
        found = self._find_reader(topic)
        if found is None:
            topics = {each for program in self.programs for each in program.sources}
            raise KeyError(f"the topology does not read {topic}; {list_names('it reads', topics)}")
        return found

    @property
    def stores(self) -> Mapping[str, Any]:
        """The typed stores of all tasks by name."""
        found: dict[str, Any] = {}
        for program in sorted(self.programs, key=lambda each: each.is_global):
            found |= self.tasks[program.name].stores
        return found

    def _enqueue(self, record: OutputRecord) -> None:
        """Queue a record. Topics are ordered by the timestamp of their first record (`PartitionGroup`)."""
        queue = self._queues[record[0]]
        queue.append(record)
        if len(queue) == 1:
            self._topics.offer(record[0])

    def _dequeue(self) -> Iterator[tuple[str, InputRecord]]:
        """Yield the program that reads the next record, and the record, until no record is queued."""
        while self._topics:
            topic = self._topics.poll()
            queue = self._queues[topic]
            _, _, key, value, timestamp, headers = queue.popleft()
            if queue:
                self._topics.offer(topic)
            record = (topic, 0, next(self._offsets[topic]), timestamp, key, value, headers)
            yield self.reader(topic).name, record

    def _commit(self, name: str, outputs: list[OutputRecord]) -> None:
        """Commit a batch of a program, and queue the records that the application reads itself."""
        state = self._states[name]
        state.commit(state.version)
        for output in outputs:
            if self._find_reader(output[0]) is not None:
                self._enqueue(output)

    def _run(self, wall_clock_ms: int) -> list[OutputRecord]:
        written: list[OutputRecord] = []
        for name, record in self._dequeue():
            written += self._process_batch(name, [record], wall_clock_ms)
        return written

    def _process_batch(self, name: str, records: list[InputRecord], wall_clock_ms: int) -> list[OutputRecord]:
        outputs = self.tasks[name].process(records, wall_clock_ms)
        self._commit(name, outputs)
        return outputs

    def _find_reader(self, topic: str) -> SubtopologyProgram | None:
        if topic not in self._reader_by_topic:
            found = next((program for program in self.programs if topic in program.sources), None)
            if found is None and topic not in self._changelogs:
                found = next((program for program in self.programs if program.reads(topic)), None)
            self._reader_by_topic[topic] = found
        return self._reader_by_topic[topic]


def find_no_schema(_id: int) -> str | None:
    """Return None (`SchemaOf`): all schemas of the registry are given, with ids of the driver."""
    return None


@attrs.frozen
class GivenSchemas:
    """Finds the schemas of registered formats in `texts`, subject → text, in place of a registry."""

    texts: Mapping[str, str]

    def __call__(self, formats: Iterable[str], application: Application) -> Mapping[str, str]:
        schemas: dict[str, str] = {}
        problems: list[Problem] = []
        for number, name in enumerate(formats, start=1):
            found = self._schema(number, name, application)
            if isinstance(found, Problem):
                problems.append(found)
            else:
                schemas[name] = found
        if problems:
            raise ProblemsError(problems)
        return schemas

    def _schema(self, number: int, name: str, application: Application) -> str | Problem:
        named = schema_subject(name) or ""
        if named not in self.texts:
            return _schema_not_given(named, self.texts, application)
        text = self.texts[named]
        try:
            compiled = compile_schema(text) if schema_type(name) == "PROTOBUF" else text
        except CompilerUnavailableError as error:
            return compiler_missing(name, str(error), application)
        except ValueError as error:
            return _schema_unusable(named, str(error), application)
        return json.dumps({"id": number, "schema": compiled})


def _schema_not_given(named: str, given: Iterable[str], application: Application) -> Problem:
    return Problem(
        code=ProblemCode.NOT_RUNNABLE,
        application=application.id,
        summary=f"The schema of the subject {named} is not given.",
        expected=f"schemas={{'{named}': ...}}",
        found=f"subjects: {', '.join(sorted(given)) or 'none'}",
        why="TopologyTestDriver asks no schema registry, and records are read and written with the schema.",
        fix="Pass the text of the schema to TopologyTestDriver, as argument `schemas`.",
    )


def _schema_unusable(named: str, reason: str, application: Application) -> Problem:
    return Problem(
        code=ProblemCode.UNSUPPORTED_FORMAT,
        application=application.id,
        summary=f"The schema of the subject {named} cannot be used: {reason}.",
        expected="a Protobuf schema that imports no other file",
        found=named,
        why="Records cannot be read or written without it.",
        fix="Correct the text of the schema, or the format's name.",
    )
