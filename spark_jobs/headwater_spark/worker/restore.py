"""Restore local state: of a task, from the prepared batch or changelog topics, and of global tables.

Each process holds all global tables, and updates them before a batch (`GlobalStreamThread`).
"""

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from threading import Lock, get_ident

import attrs
import structlog

from headwater.model.offset_metadata import BATCH_ID, LINEAGE_KEY
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.records import InputRecord, TopicPartition, Value
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.stores.store_layouts import store_layouts
from headwater_spark.engine.task import Task
from headwater_spark.worker.local_state import MemoryState
from headwater_spark.worker.messages import BatchRequest
from headwater_spark.worker.partition_reader import OffsetRange, PartitionReader, RecordChunk
from headwater_spark.worker.task_session import TaskSession

_log = structlog.get_logger(__name__)
_INCOMPLETE = -1
"""The version of a state whose batches are committed, but of which a store has to be restored."""


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
    layouts = store_layouts(program)
    if layouts and state.offsets() and not state.has_layouts():
        _log.warning(
            "local state of an earlier version used: it does not show whether stores were edited since then",
            task=task,
        )
    for store in state.adopt_layouts(layouts, changelogs):
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
    task: Task, state: BatchedState, chunks: Iterable[RecordChunk], topic: str, lineage: int | None
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
) -> Iterator[tuple[str, OffsetRange]]:
    known = state.offsets()
    for topic in program.changelogs.values():
        yield topic, OffsetRange(known.get(topic, 0))
    for topic in program.source_changelogs.values():
        # Records after the committed offset are input that has not been processed.
        yield topic, OffsetRange(known.get(topic, 0), session.offsets.get((topic, partition), 0))


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
