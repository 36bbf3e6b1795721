"""`TopologyTestDriver`: processes records one by one, and keeps the records that a topology writes."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from headwater.model.nodes import SourceNode
from headwater.model.problems import ProblemsError
from headwater_spark.applications import Document, load_given_document
from headwater_spark.driver.preflight import check_runnable, class_failures, class_problems
from headwater_spark.engine.error_handlers import PoisonRecordError
from headwater_spark.engine.program.settings import engine_settings, without_cache
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import Headers, OutputRecord, Value
from headwater_spark.engine.serdes import DeserializationError, SerializationError, plain_serde
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.processors import Record
from headwater_spark.testing.single_partition import (
    GivenSchemas,
    SinglePartitionRunner,
    Sinks,
    build_single_partition_programs,
    find_no_schema,
    list_names,
)
from headwater_spark.testing.topics import TestInputTopic, TestOutputTopic

__all__ = [
    "DeserializationError",
    "PoisonRecordError",
    "SerializationError",
    "TestInputTopic",
    "TestOutputTopic",
    "TopologyTestDriver",
]

_NOT_HEADERS = "headers are pairs of a name (str) and a value (bytes or None)"


class TopologyTestDriver:
    """Processes records one by one, and keeps the records that the topology writes.

    The constructor initializes the processors (`init`). As a context manager, the driver closes them at the
    end. Create a new driver after a call in which a record or a punctuation failed: further calls of `pipe`
    and `advance_wall_clock` raise RuntimeError.

    Args:
        document: a path, the content of a document, or a document of `headwater.topology`.
        schemas: subject of a schema registry → text of its schema. The registry is not asked.
        wall_clock_ms: the wall-clock time at which processors are initialized, and of the first records;
            Kafka's driver uses the present time.

    Raises:
        ProblemsError: The document cannot run, or a class cannot be used; the same problems as at a start.
            Or the schema of a subject is not given, or cannot be used.
        Exception: The error of your code, if a processor cannot be initialized.
        TypeError: `wall_clock_ms` is not an `int`.
        ValueError: `wall_clock_ms` is negative.
    """

    def __init__(
        self,
        document: Document,
        *,
        schemas: Mapping[str, str] | None = None,
        wall_clock_ms: int = 0,
    ) -> None:
        _check_milliseconds("wall_clock_ms", wall_clock_ms)
        typed, folder = load_given_document(document)
        runnable = check_runnable(typed, folder, latest_schemas=GivenSchemas(schemas or {}))
        if problems := class_problems(runnable, class_failures):
            raise ProblemsError(problems)
        settings = without_cache(engine_settings(typed.application.config))
        programs = build_single_partition_programs(
            typed, runnable.nodes, settings=settings, schemas=runnable.schemas, schema_of=find_no_schema
        )
        self._sinks = Sinks.from_programs(programs, runnable, settings.dead_letter_topic)
        self._runner = SinglePartitionRunner(programs)
        self._wall_clock_ms = wall_clock_ms
        self._timestamp_ms = 0
        self._unread: dict[str, deque[OutputRecord]] = {}
        """The records of each topic that was written; a topic stays when all of them were read."""
        self._is_closed = False
        self._has_failed = False
        self._run(lambda: self._runner.advance_wall_clock(wall_clock_ms))

    def pipe(
        self,
        topic: str,
        key: Value,
        value: Value,
        timestamp: int | None = None,
        headers: Iterable[tuple[str, bytes | None]] = (),
    ) -> None:
        """Process a record of a source topic, and all records that follow from it.

        Key and value are written in the formats of the topic; `bytes` are not changed. `timestamp` is in
        milliseconds; default: the timestamp of the record before, at first 0 (in Kafka the present time).

        Raises:
            KeyError: The topology does not read this topic.
            SerializationError: Key or value cannot be written in the format of the topic.
            TypeError: `timestamp` is not an `int`, or `headers` are not pairs of `str` and `bytes` or None.
            ValueError: `timestamp` is negative.
            PoisonRecordError: The record cannot be processed, and its exception handler fails. Its cause is
                the error of your code. Create a new driver then.
            RuntimeError: The driver is closed, or a call before has failed.
        """
        self._check_usable()
        key_serde, value_serde = self._source_serdes(topic)
        if timestamp is not None:
            _check_milliseconds("timestamp", timestamp)
        pairs = _checked_headers(headers)
        key_bytes = _to_bytes(key, key_serde.serialize, f"key of a record of {topic}")
        value_bytes = _to_bytes(value, value_serde.serialize, f"value of a record of {topic}")
        self._timestamp_ms = now = self._timestamp_ms if timestamp is None else timestamp
        clock = self._wall_clock_ms
        self._run(
            lambda: self._runner.pipe(topic, key_bytes, value_bytes, now, wall_clock_ms=clock, headers=pairs)
        )

    def create_input_topic(
        self,
        topic: str,
        *,
        key_format: str | None = None,
        value_format: str | None = None,
        start_timestamp: int = 0,
        auto_advance: int = 0,
    ) -> TestInputTopic:
        """Return a source topic with its own time, in milliseconds, for records without a timestamp.

        `key_format` and `value_format` are formats without a schema, such as `string`, to write records that
        differ from the formats of the topic. Kafka's topic starts at the present time.

        Raises:
            KeyError: The topology does not read this topic.
            ValueError: There is no such format, or a time is negative.
        """
        write_key, write_value = (
            own.serialize if name is None else plain_serde(name).serialize
            for own, name in zip(self._source_serdes(topic), (key_format, value_format), strict=True)
        )

        def pipe(
            key: Value, value: Value, timestamp: int, headers: Iterable[tuple[str, bytes | None]]
        ) -> None:
            key_bytes = _to_bytes(key, write_key, f"key of a record of {topic}")
            value_bytes = _to_bytes(value, write_value, f"value of a record of {topic}")
            self.pipe(topic, key_bytes, value_bytes, timestamp, headers)

        return TestInputTopic(topic, pipe, start_timestamp, auto_advance)

    def create_output_topic(
        self, topic: str, *, key_format: str | None = None, value_format: str | None = None
    ) -> TestOutputTopic:
        """Return a topic whose records can be read one by one, as a list, or as a `dict`.

        They are read in the formats of `read`, or in `key_format` and `value_format`: formats without a
        schema, such as `long`, for the records of internal topics.

        Raises:
            KeyError: The topology does not write this topic.
            ValueError: There is no such format.
        """
        self._sinks.check(topic)
        formats = [None if name is None else plain_serde(name) for name in (key_format, value_format)]

        def to_record(written: OutputRecord) -> Record:
            if formats == [None, None]:
                return self._sinks.to_record(written)
            _, _, key, value, timestamp, headers = written
            default = self._sinks.to_record(written) if None in formats else Record(key, value, timestamp)
            return Record(
                default.key if formats[0] is None else _from_bytes(key, formats[0]),
                default.value if formats[1] is None else _from_bytes(value, formats[1]),
                timestamp,
                headers,
            )

        return TestOutputTopic(topic, lambda: self._unread.get(topic, deque()), to_record)

    def advance_wall_clock(self, milliseconds: int) -> None:
        """Advance the wall-clock time, and run the punctuations that are due.

        Raises:
            TypeError: `milliseconds` is not an `int`.
            ValueError: `milliseconds` is negative.
            PoisonRecordError: A punctuation, or a record that it forwards, cannot be processed, and its
                exception handler fails. Create a new driver then.
            RuntimeError: The driver is closed, or a call before has failed.
        """
        self._check_usable()
        _check_milliseconds("milliseconds", milliseconds)
        self._wall_clock_ms += milliseconds
        self._run(lambda: self._runner.advance_wall_clock(self._wall_clock_ms))

    def read(self, topic: str) -> tuple[Record, ...]:
        """Return the records that were written to a topic since the last call, in their order.

        Keys and values are read in the formats of the sink. If no sink names the topic, they are read in the
        formats of the sinks that choose their topic by record. They are `bytes` in the dead letter topic, in
        internal topics (repartition and changelog topics), and if these sinks have different formats. Records
        can also be read after `close`, and after a call that failed: the records of the calls before it.

        Raises:
            KeyError: The topology does not write this topic.
            DeserializationError: A record is not valid in the format. All records can be read again.
        """
        self._sinks.check(topic)
        unread = self._unread.get(topic, deque())
        records = tuple(map(self._sinks.to_record, unread))
        unread.clear()
        return records

    @property
    def produced_topic_names(self) -> frozenset[str]:
        """The topics to which records were written, with internal topics."""
        return frozenset(self._unread)

    @property
    def dropped_records(self) -> int:
        """The number of records that operators dropped (no key, too late) or exception handlers skipped.

        It is `dropped-records-total` of Kafka Streams' metrics.
        """
        return sum(task.context.count_dropped() for task in self._runner.tasks.values())

    @property
    def stores(self) -> Mapping[str, Value]:
        """All stores by name, as `store` returns them."""
        return self._runner.stores

    def store(self, name: str) -> Value:
        """Return a store by its name.

        Its kind decides what it returns, as for a processor. Stores of operators (`count`, `aggregate`,
        `reduce`, `table`) return `ValueAndTimestamp`: `driver.store("counts").get("1").value`. A store of
        `addStateStore` returns the value itself, unless its kind is another one than `keyValue`.

        Raises:
            KeyError: There is no such store. The text names the stores that exist.
        """
        stores = self._runner.stores
        if name not in stores:
            raise KeyError(f"the topology has no store {name}; {list_names('its stores', stores)}")
        return stores[name]

    def close(self) -> None:
        """Close the processors of all tasks. Does nothing the second time.

        Raises:
            Exception: The first error of your code; the other tasks are closed, too.
        """
        if self._is_closed:
            return
        self._is_closed = True
        errors: list[Exception] = []
        for task in self._runner.tasks.values():
            try:
                task.close()
            except Exception as error:  # noqa: BLE001 - users' classes raise anything
                errors.append(error)
        if errors:
            raise errors[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the processors. An error of the `with` block is raised, and not an error of `close`."""
        try:
            self.close()
        except Exception as failure:
            if error is None:
                raise
            error.add_note(f"A processor could not be closed: {failure!r}")

    def _check_usable(self) -> None:
        if self._is_closed:
            raise RuntimeError("the driver is closed")
        if self._has_failed:
            raise RuntimeError("a call of this driver has failed: create a new driver")

    def _run(self, run: Callable[[], list[OutputRecord]]) -> None:
        """Keep the records that `run` returns."""
        try:
            written = run()
        except BaseException:
            self._has_failed = True
            raise
        for record in written:
            self._unread.setdefault(record[0], deque()).append(record)

    def _source_serdes(self, topic: str) -> tuple[Serde, Serde]:
        program = self._runner.reader(topic)
        name = program.source(topic)
        source = next(each for each in program.nodes if isinstance(each, SourceNode) and each.name == name)
        return serdes_of(source.reads, program)


def _from_bytes(data: bytes | None, serde: Serde) -> Value:
    return None if data is None else serde.deserialize(data)


def _check_milliseconds(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} is {type(value).__name__}, and not int")
    if value < 0:
        raise ValueError(f"{name} is negative: {value}")


def _checked_headers(headers: Iterable[Any]) -> Headers:
    try:
        pairs = tuple((name, value) for name, value in headers)
    except (TypeError, ValueError):
        raise TypeError(_NOT_HEADERS) from None
    if not all(isinstance(name, str) and isinstance(value, bytes | None) for name, value in pairs):
        raise TypeError(_NOT_HEADERS)
    return pairs


def _to_bytes(value: Value, serialize: Callable[[Value], bytes], what: str) -> bytes | None:
    """Return the value in its format. Errors have `what` as a note."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return serialize(value)
    except SerializationError as error:
        error.add_note(what)
        raise
