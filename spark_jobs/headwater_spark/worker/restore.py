"""Restore local state: of a task, from the prepared batch or changelog topics, and of global tables.

Each process holds all global tables, and updates them before a batch (`GlobalStreamThread`).
"""

import secrets
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from itertools import repeat
from threading import Lock, get_ident
from typing import Any

import attrs
import structlog
from confluent_kafka import KafkaError, KafkaException, Message
from confluent_kafka import TopicPartition as KafkaTopicPartition

from headwater.kafka import Connection
from headwater.model.offset_metadata import BATCH_ID, LINEAGE_KEY
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import Headers, InputRecord, TopicPartition, Value
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.stores.store_layouts import store_layouts
from headwater_spark.engine.task import Task
from headwater_spark.worker import clients
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.task_session import TaskSession

_log = structlog.get_logger(__name__)
_RECORDS_AT_ONCE = 10_000
_CHUNK_SECONDS = 0.05
"""How long records are collected for a chunk that has fewer."""
_CONSUME_SECONDS = 0.005
"""`consume` blocks for this time unless it gets as many records as it requested."""
_INCOMPLETE = -1
"""The version of a state whose batches are committed, but of which a store has to be restored."""
_SETTINGS: Mapping[str, Any] = {
    "enable.partition.eof": True,
    "fetch.wait.max.ms": 10,
    # librdkafka stops fetching when 100,000 records are queued, by default for a second. They last for less.
    "fetch.queue.backoff.ms": 10,
}


@attrs.frozen
class RestoreProgress:
    """How much of a changelog topic's partition is restored, in offsets: compaction has removed some."""

    topic: str
    restored: int
    to_restore: int


_RESTORING: dict[int, RestoreProgress] = {}
"""Thread → what it restores."""


def restore_progress(thread: int) -> RestoreProgress | None:
    """Return what a thread of this process restores; None = nothing."""
    return _RESTORING.get(thread)


def restore_state(request: BatchRequest, partition: int, state: BatchedState, session: TaskSession) -> int:
    """Bring `state` to the version that `session` found committed; return how many records were restored.

    State that is only behind, because another process had the task, gets the newer changelog records. Any
    other difference empties it first, also a batch with the same number that another process has committed.
    A store that was added, or whose entries have another layout since an edit of the document or another
    version of Headwater, is restored alone.

    Raises:
        KafkaException: The changelog topics cannot be read.
    """
    committed = session.metadata
    lineage = committed.clocks.get(LINEAGE_KEY)
    has_same_lineage = lineage is not None and state.metadata.get(LINEAGE_KEY) == lineage
    is_latest = has_same_lineage and state.recover(committed.version, committed.clocks.get(BATCH_ID))
    if not is_latest and (not has_same_lineage or state.version >= committed.version):
        state.reset()
    _clear_other_layouts(request.program, request.task_name(partition), state)
    missing = _stores_to_restore(request.program, state)
    if is_latest and not missing:
        return 0
    if is_latest:
        state.commit(_INCOMPLETE - 1)  # else the state would count as restored if the process is killed
    state.forget_clocks(missing)
    restored = _restore_from_changelogs(request, partition, state, session)
    state.metadata.update(committed.clocks)
    state.metadata.setdefault(LINEAGE_KEY, secrets.randbits(62) | 1)
    state.commit(committed.version - 1)
    return restored


def _clear_other_layouts(program: SubtopologyProgram, task: str, state: BatchedState) -> None:
    """Clear the stores whose entries have another layout than the program's; log which."""
    changelogs = {**program.source_changelogs, **program.changelogs}
    for store in state.adopt_layouts(store_layouts(program), changelogs):
        if store in changelogs:
            _log.info(
                "restoring store, because the layout of its entries has changed", task=task, store=store
            )
        else:
            _log.warning(
                "entries of a store deleted: their layout has changed, and the store has no changelog topic",
                task=task,
                store=store,
            )


def _stores_to_restore(program: SubtopologyProgram, state: BatchedState) -> frozenset[str]:
    """Return the stores of which no changelog record was read: also if the state has all batches."""
    known = state.offsets()
    changelogs = {**program.source_changelogs, **program.changelogs}
    return frozenset(store for store, topic in changelogs.items() if topic not in known)


def _restore_from_changelogs(
    request: BatchRequest, partition: int, state: BatchedState, session: TaskSession
) -> int:
    ranges = dict(_changelog_ranges(request.program, partition, state, session))
    if not ranges:
        return 0
    task, lineage = Task(request.program, partition, state), session.metadata.clocks.get(LINEAGE_KEY)
    with closing(PartitionReader(request.connection, request.group)) as reader:
        return sum(
            records
            for topic, range_ in ranges.items()
            for records in restore_topic(task, state, reader.read(topic, partition, range_), topic, lineage)
        )


def restore_topic(
    task: Task, state: BatchedState, chunks: Iterable["RecordChunk"], topic: str, lineage: int | None
) -> Iterator[int]:
    """Apply the records of a changelog topic chunk by chunk; yield how many each chunk has.

    If the process is killed, the next restore continues after the last chunk, if `lineage` is committed.
    """
    thread = get_ident()
    first: int | None = None
    try:
        for chunk in chunks:
            task.restore(topic, chunk.records)
            if lineage:
                state.metadata[LINEAGE_KEY] = lineage
            state.commit(state.version - 1, {topic: chunk.next_offset})
            if first is None and len(chunk):
                first = chunk.messages[0].offset() or 0
            if first is not None and chunk.end is not None:
                _RESTORING[thread] = RestoreProgress(topic, chunk.next_offset - first, chunk.end - first)
            yield len(chunk.records)
    finally:
        _RESTORING.pop(thread, None)


def _changelog_ranges(
    program: SubtopologyProgram, partition: int, state: BatchedState, session: TaskSession
) -> Iterator[tuple[str, "OffsetRange"]]:
    known = state.offsets()
    for topic in program.changelogs.values():
        yield topic, OffsetRange(known.get(topic, 0))
    for topic in program.source_changelogs.values():
        # Records after the committed offset are input that has not been processed.
        yield topic, OffsetRange(known.get(topic, 0), session.offsets.get((topic, partition), 0))


@attrs.frozen
class OffsetRange:
    """Offsets from `start` up to and excluding `end`; None = the end of what is committed now."""

    start: int = 0
    end: int | None = None


@attrs.frozen
class RecordChunk:
    """Consumed records of one partition, in order; `next_offset` follows them, `end` is where the read ends.

    Most of the time of a reader is spent on their conversion: one that needs only the keys reads those.
    """

    messages: Sequence[Message]
    next_offset: int
    end: int | None = None

    def __len__(self) -> int:
        return len(self.messages)

    @cached_property
    def records(self) -> tuple[InputRecord, ...]:
        if not self.messages:
            return ()
        topic, partition = self.messages[0].topic() or "", self.messages[0].partition() or 0
        offsets = [offset or 0 for offset in map(Message.offset, self.messages)]
        columns = (offsets, self.times, self.keys, self.values, self.headers)
        return tuple(zip(repeat(topic), repeat(partition), *columns, strict=False))

    def record(self, index: int) -> InputRecord:
        return input_record(self.messages[index])

    def value(self, index: int) -> bytes | None:
        return _encode_text(self.messages[index].value())

    @property
    def keys(self) -> list[bytes | None]:
        return _encode_texts(map(Message.key, self.messages))

    @property
    def values(self) -> list[bytes | None]:
        return _encode_texts(map(Message.value, self.messages))

    @property
    def times(self) -> list[int]:
        """The timestamps in milliseconds."""
        return [time for _, time in map(Message.timestamp, self.messages)]

    @property
    def headers(self) -> list[Headers]:
        found: list[Any] = list(map(Message.headers, self.messages))  # the stubs allow a dict
        return [tuple(each) if each else () for each in found] if any(found) else [()] * len(found)


class PartitionReader:
    """Reads ranges of partitions one after another, committed records only (`StoreChangelogReader`).

    `group` is the application's group, which it may read: librdkafka looks for the coordinator of any group.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._consumer = clients.consumer(connection, group, _SETTINGS)

    def read(self, topic: str, partition: int, range_: OffsetRange) -> Iterator[RecordChunk]:
        """Yield the records of the range; offsets that retention or compaction removed are skipped.

        The last chunk may be empty: it gives the offset where the next read starts. Records that are written
        meanwhile are left to the next read, although the client may have fetched some of them.

        Raises:
            KafkaException: The partition cannot be read, or nothing arrives for `clients.REQUEST_SECONDS`.
        """
        low, high = self.bounds(topic, partition)
        at = max(low, range_.start)
        end = max(at, high if range_.end is None else min(high, range_.end))
        if at < end:
            self._consumer.assign([KafkaTopicPartition(topic, partition, at)])
        silence = clients.Silence()
        while at < end:
            messages = self._consume(at, end)
            at = _next_offset(messages, at)
            silence.check(is_silent=not messages)
            read = (
                messages
                if at <= end and not any(map(Message.error, messages))
                else _records_before(messages, end)
            )
            yield RecordChunk(read, min(at, end), end)
        yield RecordChunk((), end, end)

    def _consume(self, at: int, end: int) -> list[Message]:
        """Return the next messages; do not wait for more of them once the range is read."""
        messages: list[Message] = []
        deadline = time.monotonic() + _CHUNK_SECONDS
        while len(messages) < _RECORDS_AT_ONCE and time.monotonic() < deadline:
            messages += self._consumer.consume(_RECORDS_AT_ONCE - len(messages), timeout=_CONSUME_SECONDS)
            if _next_offset(messages[-1:], at) >= end:
                break
        return messages

    def close(self) -> None:
        self._consumer.close()

    @clients.retry_transient
    def bounds(self, topic: str, partition: int) -> tuple[int, int]:
        """Return the first offset, and the one after the last committed record; raises `KafkaException`."""
        kafka_partition = KafkaTopicPartition(topic, partition)
        first, end = self._consumer.get_watermark_offsets(kafka_partition, clients.REQUEST_SECONDS)
        return first, end


class PartitionFollower:
    """Reads several partitions at the same time, committed records only, and later what is newer.

    Meanwhile the client fetches newer records: a read that continues the last one does not wait for them.
    """

    def __init__(self, connection: Connection, group: str) -> None:
        self._consumer = clients.consumer(connection, group, _SETTINGS)
        self._positions: Mapping[TopicPartition, int] = {}
        """Assigned partition → the offset after the last record that was returned."""

    def read(self, starts: Mapping[TopicPartition, int]) -> Iterator[tuple[TopicPartition, RecordChunk]]:
        """Yield the records from `starts` up to the present ends at least, each partition in its order.

        Offsets that retention or compaction removed are skipped. Raises `KafkaException`, also if nothing
        arrives for `clients.REQUEST_SECONDS`.
        """
        bounds = clients.bounds(self._consumer, starts)
        positions = {each: max(start, bounds[each][0]) for each, start in starts.items()}
        ends = {each: end for each, (_, end) in bounds.items()}
        if positions != self._positions:
            self._consumer.assign([KafkaTopicPartition(*each, at) for each, at in positions.items()])
        self._positions = {}  # if the caller does not read all, the next read begins again at its starts
        silence = clients.Silence()
        while any(at < ends[each] for each, at in positions.items()):
            found = self._consume(positions, ends)
            for each, messages in found.items():
                positions[each] = _next_offset(messages, positions.get(each, 0))
                read = [message for message in messages if message.error() is None]
                yield each, RecordChunk(read, positions[each])
            silence.check(is_silent=not any(found.values()))
        self._positions = positions

    def close(self) -> None:
        self._consumer.close()

    def _consume(
        self, positions: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, list[Message]]:
        """Return the next messages; do not wait for more of them once all partitions are read."""
        found: dict[TopicPartition, list[Message]] = defaultdict(list)
        number, deadline = 0, time.monotonic() + _CHUNK_SECONDS
        while number < _RECORDS_AT_ONCE and time.monotonic() < deadline:
            for each in self._consumer.consume(_RECORDS_AT_ONCE - number, timeout=_CONSUME_SECONDS):
                found[each.topic() or "", each.partition() or 0].append(each)
                number += 1
            if all(_next_offset(found[each][-1:], at) >= ends[each] for each, at in positions.items()):
                break
        return found


def input_record(message: Message) -> InputRecord:
    """Return a consumed message as the engine's record."""
    _, timestamp = message.timestamp()
    headers: Any = message.headers() or ()  # the library's stubs allow a dict, which it never returns
    return (
        message.topic() or "",
        message.partition() or 0,
        message.offset() or 0,
        timestamp,
        _encode_text(message.key()),
        _encode_text(message.value()),
        tuple(headers),
    )


def _records_before(messages: Iterable[Message], end: int) -> list[Message]:
    """Return the records with offsets below `end`."""
    return [each for each in messages if each.error() is None and (each.offset() or 0) < end]


def _next_offset(messages: list[Message], at: int) -> int:
    """Return the offset after `messages`; an end-of-partition event carries the offset that follows it."""
    errors = list(map(Message.error, messages))
    if messages and not any(errors):
        return (messages[-1].offset() or 0) + 1
    for message, error in zip(messages, errors, strict=True):
        if error is None:
            at = (message.offset() or 0) + 1
        elif error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001 - the library's public name
            at = max(at, message.offset() or 0)
        else:
            raise KafkaException(error)
    return at


def _encode_texts(values: Iterable[bytes | str | None]) -> list[bytes | None]:
    found: list[Any] = list(values)
    return list(map(_encode_text, found)) if str in set(map(type, found)) else found


def _encode_text(value: bytes | str | None) -> bytes | None:
    return value.encode() if isinstance(value, str) else value


_PARTITION = 0


class _GlobalTask:
    """One global program over all partitions of its topics."""

    def __init__(self, request: BatchRequest, program: SubtopologyProgram) -> None:
        self._topics = tuple(program.sources)
        self._state = MemoryState()
        self._task = Task(program, _PARTITION, self._state)
        self._reader = PartitionReader(request.connection, request.group)
        self._next_offsets: dict[TopicPartition, int] = {}

    def read_new_records(self, partition_counts: Mapping[str, int]) -> None:
        for topic in self._topics:
            for partition in range(partition_counts.get(topic, 0)):
                range_ = OffsetRange(self._next_offsets.get((topic, partition), 0))
                for chunk in self._reader.read(topic, partition, range_):
                    self._process(chunk.records)
                    self._next_offsets[topic, partition] = chunk.next_offset

    @property
    def stores(self) -> Mapping[str, Value]:
        return self._task.stores

    def _process(self, records: tuple[InputRecord, ...]) -> None:
        if records:
            self._task.process(records, time.time_ns() // 1_000_000)
            self._state.commit(self._state.version)


_TASKS: dict[tuple[str, str], _GlobalTask] = {}
_READING = Lock()


def read_global_stores(request: BatchRequest) -> Mapping[str, Value]:
    """Return store → typed store, after reading the global topics to their ends; raises `KafkaException`."""
    stores: dict[str, Value] = {}
    with _READING:
        for program in request.global_programs:
            name = request.application, program.name
            if name not in _TASKS:
                _TASKS[name] = _GlobalTask(request, program)
            _TASKS[name].read_new_records(request.partition_counts)
            stores |= _TASKS[name].stores
    return stores
