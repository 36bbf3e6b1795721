"""`TopologyTestDriver`: processes records one by one."""

import json
from collections.abc import Callable, Iterable, Mapping

import attrs

from headwater.model.behaviors import RecordFormat
from headwater.model.nodes import SinkNode, SourceNode
from headwater.model.problems import ProblemsError
from headwater.model.topology import Application
from headwater_spark.applications import Document, load_given_document
from headwater_spark.driver.preflight import check_runnable, class_failures, class_problems
from headwater_spark.engine.error_handlers import PoisonRecordError
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.program.settings import engine_settings, without_cache
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Headers, OutputRecord, Value
from headwater_spark.engine.serdes import schema_type, subject
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.processors import Record
from headwater_spark.testing.single_partition import SinglePartitionRunner, build_single_partition_programs
from headwater_spark.worker.protobuf_schemas import compile_schema

__all__ = ["PoisonRecordError", "TopologyTestDriver"]


class TopologyTestDriver:
    """Processes records one by one, and keeps what the topology writes.

    Args:
        document: a file, the content of one, or a document of `headwater.topology`.
        schemas: subject of a schema registry → text of its schema. The registry is not asked.
        wall_clock_ms: the wall-clock time of the first records.

    Raises:
        ProblemsError: The document cannot run, or a class cannot be used; the same problems as at a start.
        KeyError: The schema of a subject is not given.
    """

    def __init__(
        self,
        document: Document,
        *,
        schemas: Mapping[str, str] | None = None,
        wall_clock_ms: int = 0,
    ) -> None:
        typed, folder = load_given_document(document)
        runnable = check_runnable(typed, folder, latest_schemas=_GivenSchemas(schemas or {}))
        if problems := class_problems(runnable, class_failures):
            raise ProblemsError(problems)
        settings = without_cache(engine_settings(typed.application.config))
        self._internal = {topic.name for topic in runnable.nodes.repartition_topics}
        self._dead_letters = settings.dead_letter_topic
        self._programs = build_single_partition_programs(
            typed, runnable.nodes, settings=settings, schemas=runnable.schemas
        )
        self._runner = SinglePartitionRunner(self._programs)
        self._wall_clock_ms = wall_clock_ms
        self._timestamp_ms = 0
        self._unread: dict[str, list[OutputRecord]] = {}

    def pipe(
        self, topic: str, key: Value, value: Value, timestamp: int | None = None, headers: Headers = ()
    ) -> None:
        """Process a record of a source topic, and all records that follow from it.

        Key and value are written in the formats of the topic; `bytes` are not changed. `timestamp` is in
        milliseconds; default: the timestamp of the record before, at first 0.

        Raises:
            KeyError: The topology does not read this topic.
            PoisonRecordError: The record cannot be processed, and its exception handler fails. Its cause is
                the error of your code. Create a new driver then.
        """
        key_serde, value_serde = self._serdes_of_source(topic)
        key_bytes = _to_bytes(key, key_serde.serialize)
        value_bytes = _to_bytes(value, value_serde.serialize)
        if timestamp is not None:
            self._timestamp_ms = timestamp
        now, wall_clock_ms = self._timestamp_ms, self._wall_clock_ms
        self._keep(
            self._runner.pipe(
                topic, key_bytes, value_bytes, now, wall_clock_ms=wall_clock_ms, headers=headers
            )
        )

    def advance_wall_clock(self, milliseconds: int) -> None:
        """Advance the wall-clock time, and run the punctuations that are due."""
        self._wall_clock_ms += milliseconds
        self._keep(self._runner.advance_wall_clock(self._wall_clock_ms))

    def read(self, topic: str) -> tuple[Record, ...]:
        """Return the records that were written to a topic since the last call, in their order.

        Keys and values are read in the formats of the sink. They are `bytes` in the dead letter queue and in
        internal topics.
        """
        return tuple(self._to_record(topic, each) for each in self._unread.pop(topic, ()))

    def store(self, name: str) -> Value:
        """Return a store by its name.

        Raises:
            KeyError: There is no such store.
        """
        return self._runner.stores[name]

    def close(self) -> None:
        """Close the processors."""
        for task in self._runner.tasks.values():
            task.close()

    def _keep(self, written: Iterable[OutputRecord]) -> None:
        for record in written:
            self._unread.setdefault(record[0], []).append(record)

    def _serdes_of_source(self, topic: str) -> tuple[Serde, Serde]:
        program = self._runner.reader(topic)
        name = program.source(topic)
        source = next(each for each in program.nodes if isinstance(each, SourceNode) and each.name == name)
        return serdes_of(source.reads, program)

    def _sink(self, topic: str) -> tuple[SubtopologyProgram, RecordFormat] | None:
        """Return the format of a user's topic: of its sink, or of a sink that chooses the topic by record."""
        found = [
            (program, node)
            for program in self._programs
            for node in program.nodes
            if isinstance(node, SinkNode) and node.topic not in self._internal and node.topic in {topic, None}
        ]
        for program, node in sorted(found, key=lambda each: each[1].topic is None):
            return program, RecordFormat() if node.writes is None else node.writes.format
        return None

    def _to_record(self, topic: str, record: OutputRecord) -> Record:
        _, _, key, value, timestamp, headers = record
        sink = self._sink(topic)
        if sink is None or topic == self._dead_letters:
            return Record(key, value, timestamp, headers)
        program, written = sink
        read_key = program.serde(written.key, "key").deserialize
        read_value = program.serde(written.value, "value").deserialize
        return Record(
            None if key is None else read_key(key),
            None if value is None else read_value(value),
            timestamp,
            headers,
        )


def _to_bytes(value: Value, serialize: Callable[[Value], bytes]) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else serialize(value)


@attrs.frozen
class _GivenSchemas:
    """Finds the schemas of registered formats in `texts`, subject → text, in place of a registry."""

    texts: Mapping[str, str]

    def __call__(self, formats: Iterable[str], _application: Application) -> Mapping[str, str]:
        return {name: self._schema(number, name) for number, name in enumerate(formats, start=1)}

    def _schema(self, number: int, name: str) -> str:
        named = subject(name) or ""
        if named not in self.texts:
            raise KeyError(f"pass the schema of the subject {named}: schemas={{'{named}': ...}}")
        text = self.texts[named]
        compiled = compile_schema(text) if schema_type(name) == "PROTOBUF" else text
        return json.dumps({"id": number, "schema": compiled})
