"""Sources and sinks: deserialize records into a task and serialize them out of it."""

from collections.abc import Callable

import attrs

from headwater.model.formats import SinkSettings, SourceSettings
from headwater.model.nodes import SinkNode, SourceNode
from headwater_spark.engine.expressions import milliseconds
from headwater_spark.engine.key_counts import NEGATIVE_TIMESTAMP
from headwater_spark.engine.operators.interface import Process
from headwater_spark.engine.program_interface import Program, Serde
from headwater_spark.engine.record_order import ReadHead
from headwater_spark.engine.records import Headers, HeadRecord, InputRecord, Value
from headwater_spark.engine.serdes import changed_serde, reads_anything, response_serde, subscription_serde
from headwater_spark.engine.task_context import TaskContext

ProcessInput = Callable[[InputRecord], None]

_PARAMETERS = ("key", "value", "timestamp", "headers")


@attrs.frozen
class HeadReader:
    """How a source reads a record when it becomes the head of its partition, and then processes it.

    `read` returns None for a record that it skipped: it does not take part in the order of the task's records
    (`RecordQueue#updateHead`). If not `extracts_timestamp`, it returns the others with their own timestamps.
    """

    read: ReadHead[HeadRecord]
    process: Callable[[HeadRecord], None]
    extracts_timestamp: bool


def build_source(node: SourceNode, forward: Process, task: TaskContext) -> ProcessInput:
    """Return the function that deserializes an input record and forwards it.

    It drops records with a negative timestamp (`LogAndSkipOnInvalidTimestamp`, `RecordQueue`).
    """
    key_serde, value_serde = serdes_of(node.reads, task.program)
    read_key, read_value = key_serde.deserialize, value_serde.deserialize
    current, stream_time, name = task.current, task.stream_time, node.name
    deserialization_failed, drop = task.error_handlers.deserialization_failed, task.drop

    def process(record: InputRecord) -> None:
        current.record = record
        _, _, _, timestamp, key, value, headers = record
        try:
            if key is not None:
                key = read_key(key)
            if value is not None:
                value = read_value(value)
        except ValueError as error:
            deserialization_failed(record, error)
            return
        if timestamp > stream_time.now:
            stream_time.now = timestamp
        elif timestamp < 0:
            drop(name, NEGATIVE_TIMESTAMP)
            return
        forward(key, value, timestamp, headers)

    return process


def head_reader(node: SourceNode, forward: Process, task: TaskContext) -> HeadReader | None:
    """Return how a source reads the heads of its partitions; None = all its records take part in the order.

    These are records with their own timestamps that can be read, or the task fails at the first that cannot.
    """
    serdes = serdes_of(node.reads, task.program)
    extracts_timestamp = node.reads is not None and node.reads.timestamp is not None
    can_skip = task.error_handlers.skips_bad_input and not all(map(reads_anything, serdes))
    if not extracts_timestamp and not can_skip:
        return None
    read = _head_deserializer(serdes, task)
    if node.reads is not None and node.reads.timestamp is not None:
        read = _with_extracted_timestamp(read, node.reads.timestamp, task)
    current, stream_time, name, drop = task.current, task.stream_time, node.name, task.drop

    def process(head: HeadRecord) -> None:
        _, _, _, timestamp, key, value, headers, current.record = head
        if timestamp > stream_time.now:
            stream_time.now = timestamp
        elif timestamp < 0:
            drop(name, NEGATIVE_TIMESTAMP)
            return
        forward(key, value, timestamp, headers)

    return HeadReader(read, process, extracts_timestamp=extracts_timestamp)


def _head_deserializer(serdes: tuple[Serde, Serde], task: TaskContext) -> ReadHead[HeadRecord]:
    read_key, read_value = serdes[0].deserialize, serdes[1].deserialize
    deserialization_failed = task.error_handlers.deserialization_failed

    def read(record: InputRecord) -> HeadRecord | None:
        topic, partition, offset, timestamp, key, value, headers = record
        try:
            if key is not None:
                key = read_key(key)
            if value is not None:
                value = read_value(value)
        except ValueError as error:
            deserialization_failed(record, error)
            return None
        return (topic, partition, offset, timestamp, key, value, headers, record)

    return read


def _with_extracted_timestamp(
    deserialize: ReadHead[HeadRecord], expression: str, task: TaskContext
) -> ReadHead[HeadRecord]:
    time_of = task.program.expression(expression, _PARAMETERS, task.current)
    current, extraction_failed = task.current, task.error_handlers.extraction_failed

    def read(record: InputRecord) -> HeadRecord | None:
        head = deserialize(record)
        if head is None:
            return None
        current.record = record
        topic, partition, offset, timestamp, key, value, headers, _ = head
        try:
            time = milliseconds(time_of(key, value, timestamp, headers))
        except Exception as error:  # noqa: BLE001 - expressions raise anything
            extraction_failed(record, error)
            return None
        with_time = (topic, partition, offset, time, record[4], record[5], headers)
        return (topic, partition, offset, time, key, value, headers, with_time)

    return read


def build_sink(node: SinkNode, task: TaskContext) -> Process:
    """Return the function that serializes a record and appends it to the task's output."""
    key_serde, value_serde = serdes_of(node.writes, task.program)
    write_key, write_value = key_serde.serialize, value_serde.serialize
    topic = task.program.topic(node.name)
    if topic is None:
        return _dynamic_sink(node, (write_key, write_value), task)
    partition_of = task.program.partition(node.name)
    append, current, failed = task.append, task.current, task.error_handlers.production_failed

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        try:
            key_bytes = None if key is None else write_key(key)
            value_bytes = None if value is None else write_value(value)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            failed(current.record, topic, error)
            return
        partition = None if partition_of is None else partition_of(topic, key, key_bytes, value)
        append((topic, partition, key_bytes, value_bytes, timestamp, headers))

    return process


def _dynamic_sink(
    node: SinkNode,
    write: tuple[Callable[[Value], bytes], Callable[[Value], bytes]],
    task: TaskContext,
) -> Process:
    """Return the sink of a `to` with a topic name extractor (`TopicNameExtractor`)."""
    expression = node.writes.topic_expression if node.writes is not None else None
    if expression is None:
        raise ValueError(f"{node.name} has neither a topic nor an expression for it")
    topic_of = task.program.expression(expression, _PARAMETERS, task.current)
    partition_of = task.program.partition(node.name)
    write_key, write_value = write
    append, current, failed = task.append, task.current, task.error_handlers.production_failed

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        topic = topic_of(key, value, timestamp, headers)
        try:
            key_bytes = None if key is None else write_key(key)
            value_bytes = None if value is None else write_value(value)
        except (ValueError, TypeError, AttributeError, OverflowError) as error:
            failed(current.record, topic, error)
            return
        partition = None if partition_of is None else partition_of(topic, key, key_bytes, value)
        append((topic, partition, key_bytes, value_bytes, timestamp, headers))

    return process


def serdes_of(endpoint: SourceSettings | SinkSettings | None, program: Program) -> tuple[Serde, Serde]:
    """Return the key and value serdes of a source or sink; serdes of some internal topics wrap the values."""
    if endpoint is None:
        return program.serde(None, "key"), program.serde(None, "value")
    key = program.serde(endpoint.format.key, "key")
    if endpoint.foreign_key == "subscription":
        return key, subscription_serde(program.serde(endpoint.format.value, "key"))
    value = program.serde(endpoint.format.value, "value")
    if endpoint.foreign_key == "response":
        return key, response_serde(value)
    return key, changed_serde(value) if endpoint.carries_changes else value
