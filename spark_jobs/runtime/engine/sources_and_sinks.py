"""Where records enter and leave a task: bytes to values and back, timestamps, partitions."""

from collections.abc import Callable
from typing import Protocol

from infra.model.behaviors import SinkSettings, SourceSettings
from infra.model.nodes import SinkNode, SourceNode
from spark_jobs.runtime.engine.error_handlers import Failures
from spark_jobs.runtime.engine.expressions import milliseconds
from spark_jobs.runtime.engine.operators.interface import Process
from spark_jobs.runtime.engine.program_interface import Program, Serde
from spark_jobs.runtime.engine.records import Ambient, Headers, InputRecord, Value
from spark_jobs.runtime.engine.serdes import changed_serde, response_serde, subscription_serde
from spark_jobs.runtime.engine.stores.clock import Clock
from spark_jobs.runtime.engine.stores.layers import Append

Consume = Callable[[InputRecord], None]


class EndpointServices(Protocol):
    """What a task gives to its ends."""

    program: Program
    ambient: Ambient
    append: Append
    failures: Failures
    stream_time: Clock

    def drop(self, node: str, reason: str) -> None: ...


def source(node: SourceNode, forward: Process, task: EndpointServices) -> Consume:
    """Takes a record in: `ambient.record` is set, its timestamp is that of the record.

    A timestamp below 0 drops the record (`LogAndSkipOnInvalidTimestamp`, `RecordQueue`).
    """
    key_serde, value_serde = serdes_of(node.reads, task.program)
    read_key, read_value = key_serde.deserialize, value_serde.deserialize
    ambient, stream_time, name = task.ambient, task.stream_time, node.name
    bad_input, drop = task.failures.bad_input, task.drop

    def consume(record: InputRecord) -> None:
        ambient.record = record
        _, _, _, timestamp, key, value, headers = record
        try:
            if key is not None:
                key = read_key(key)
            if value is not None:
                value = read_value(value)
        except ValueError as fault:
            bad_input(record, fault)
            return
        if timestamp > stream_time.now:
            stream_time.now = timestamp
        elif timestamp < 0:
            drop(name, "negative timestamp")
            return
        forward(key, value, timestamp, headers)

    return consume


def timestamps(
    node: SourceNode, task: EndpointServices
) -> Callable[[InputRecord], InputRecord | None] | None:
    """Gives records the time that the source's expression says; None = they keep their own.

    Records are put in order by these times, so they are read before anything else is done. None for a
    record that cannot be read and is passed over.
    """
    if node.reads is None or node.reads.timestamp is None:
        return None
    key_serde, value_serde = serdes_of(node.reads, task.program)
    time_of = task.program.expression(
        node.reads.timestamp, ("key", "value", "timestamp", "headers"), task.ambient
    )
    ambient, failures = task.ambient, task.failures

    def timed(record: InputRecord) -> InputRecord | None:
        ambient.record = record
        topic, partition, offset, timestamp, key, value, headers = record
        try:
            read_key = None if key is None else key_serde.deserialize(key)
            read_value = None if value is None else value_serde.deserialize(value)
        except ValueError as fault:
            failures.bad_input(record, fault)
            return None
        time = time_of(read_key, read_value, timestamp, headers)
        return (topic, partition, offset, milliseconds(time), key, value, headers)

    return timed


def sink(node: SinkNode, task: EndpointServices) -> Process:
    """Writes records out. Raises through `failures` what its formats cannot hold."""
    key_serde, value_serde = serdes_of(node.writes, task.program)
    write_key, write_value = key_serde.serialize, value_serde.serialize
    topic = task.program.topic(node.name)
    if topic is None:
        return _dynamic_sink(node, (write_key, write_value), task)
    partition_of = task.program.partition(node.name)
    append, ambient, bad_output = task.append, task.ambient, task.failures.bad_output

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        try:
            written_key = None if key is None else write_key(key)
            written = None if value is None else write_value(value)
        except (ValueError, TypeError, AttributeError, OverflowError) as fault:
            bad_output(ambient.record, topic, fault)
            return
        partition = None if partition_of is None else partition_of(topic, key, written_key, value)
        append((topic, partition, written_key, written, timestamp, headers))

    return process


def _dynamic_sink(
    node: SinkNode, write: tuple[Callable[[Value], bytes], Callable[[Value], bytes]], task: EndpointServices
) -> Process:
    """`to` with a topic-name extractor."""
    extractor = node.writes.extractor if node.writes is not None else None
    if extractor is None:
        raise ValueError(f"{node.name} has neither a topic nor an extractor")
    topic_of = task.program.expression(extractor, ("key", "value", "timestamp", "headers"), task.ambient)
    partition_of = task.program.partition(node.name)
    write_key, write_value = write
    append, ambient, bad_output = task.append, task.ambient, task.failures.bad_output

    def process(key: Value, value: Value, timestamp: int, headers: Headers) -> None:
        topic = topic_of(key, value, timestamp, headers)
        try:
            written_key = None if key is None else write_key(key)
            written = None if value is None else write_value(value)
        except (ValueError, TypeError, AttributeError, OverflowError) as fault:
            bad_output(ambient.record, topic, fault)
            return
        partition = None if partition_of is None else partition_of(topic, key, written_key, value)
        append((topic, partition, written_key, written, timestamp, headers))

    return process


def serdes_of(end: SourceSettings | SinkSettings | None, program: Program) -> tuple[Serde, Serde]:
    """Key's and value's serdes of a source or sink; what internal topics carry is wrapped."""
    if end is None:
        return program.serde(None, "key"), program.serde(None, "value")
    key = program.serde(end.format.key, "key")
    if end.foreign_key == "subscription":
        return key, subscription_serde(program.serde(end.format.value, "key"))
    value = program.serde(end.format.value, "value")
    if end.foreign_key == "response":
        return key, response_serde(value)
    return key, changed_serde(value) if end.carries_changes else value
