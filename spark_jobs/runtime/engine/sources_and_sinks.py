"""Sources and sinks: deserialize records into a task and serialize them out of it."""

from collections.abc import Callable
from typing import Protocol

from infra.model.behaviors import SinkSettings, SourceSettings
from infra.model.nodes import SinkNode, SourceNode
from spark_jobs.runtime.engine.clocks import Clock
from spark_jobs.runtime.engine.error_handlers import ErrorHandlers
from spark_jobs.runtime.engine.expressions import milliseconds
from spark_jobs.runtime.engine.operators.interface import Process
from spark_jobs.runtime.engine.program_interface import Program, Serde
from spark_jobs.runtime.engine.records import CurrentRecord, Headers, InputRecord, Value
from spark_jobs.runtime.engine.serdes import changed_serde, response_serde, subscription_serde
from spark_jobs.runtime.engine.stores.layers import Append

ProcessInput = Callable[[InputRecord], None]
ExtractTimestamp = Callable[[InputRecord], InputRecord | None]
"""Returns the record with its extracted timestamp; None if the record was skipped."""

_PARAMETERS = ("key", "value", "timestamp", "headers")


class SourceAndSinkServices(Protocol):
    """What sources and sinks use of their task."""

    program: Program
    current: CurrentRecord
    append: Append
    error_handlers: ErrorHandlers
    stream_time: Clock

    def drop(self, node: str, reason: str) -> None: ...


def source(node: SourceNode, forward: Process, task: SourceAndSinkServices) -> ProcessInput:
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
            drop(name, "negative timestamp")
            return
        forward(key, value, timestamp, headers)

    return process


def timestamp_extractor(node: SourceNode, task: SourceAndSinkServices) -> ExtractTimestamp | None:
    """Return the timestamp extractor of a source; None if records keep their own timestamps.

    The task orders records by timestamp, so it extracts the timestamps of a batch first.
    """
    if node.reads is None or node.reads.timestamp is None:
        return None
    key_serde, value_serde = serdes_of(node.reads, task.program)
    time_of = task.program.expression(node.reads.timestamp, _PARAMETERS, task.current)
    current, error_handlers = task.current, task.error_handlers

    def extract(record: InputRecord) -> InputRecord | None:
        current.record = record
        topic, partition, offset, timestamp, key, value, headers = record
        try:
            read_key = None if key is None else key_serde.deserialize(key)
            read_value = None if value is None else value_serde.deserialize(value)
        except ValueError as error:
            error_handlers.deserialization_failed(record, error)
            return None
        try:
            time = milliseconds(time_of(read_key, read_value, timestamp, headers))
        except Exception as error:  # noqa: BLE001 - expressions raise anything
            error_handlers.extraction_failed(record, error)
            return None
        return (topic, partition, offset, time, key, value, headers)

    return extract


def sink(node: SinkNode, task: SourceAndSinkServices) -> Process:
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
    task: SourceAndSinkServices,
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
