"""One batch of one task: from its input to the commit.

The order of the steps makes a crash at any moment harmless:

    1. Open the session: the committed offsets are known. With exactly once, earlier owners are fenced.
    2. Restore the local state to the committed version (prepared batch, else changelogs).
    3. Prove that this is the last committed state (`state_proof`). Skip records below the committed offsets,
       process the others, except records that are held back.
    4. Save the state's changes on disk as the prepared batch.
    5. Commit one transaction: records of sinks and changelogs, input offsets with their metadata.
    6. Apply the prepared changes to the local state.

A crash before step 5 has no effect. After a later crash, step 2 of the next owner applies the prepared
batch.
"""

import secrets
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping

import structlog

from headwater.model.offset_metadata import BATCH_ID, DELETING_KEY, OffsetMetadata
from headwater_spark.engine.columns import OutputColumns, TopicColumns
from headwater_spark.engine.error_handlers import (
    ErrorHandlers,
    RefusedRecordError,
    describe_cause,
    escape_surrogates,
    no_refusal,
)
from headwater_spark.engine.program import SubtopologyProgram
from headwater_spark.engine.record_order import PartitionGroup, in_timestamp_order
from headwater_spark.engine.records import NO_RECORD, InputRecord, OutputRecord, TopicPartition
from headwater_spark.engine.scaling.moved_stores import MovedEntries, can_delete_later, moved_stores
from headwater_spark.engine.scaling.processors import Processors
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.stores.record_cache import bytes_per_thread
from headwater_spark.engine.task import Task
from headwater_spark.worker.interleaving import (
    ProcessedPart,
    in_processing_order,
    interleave_records,
    processed_part,
    with_task_header,
    without_read,
    without_task_headers,
)
from headwater_spark.worker.local_state import LocalState, MemoryState
from headwater_spark.worker.messages import BatchRequest, BatchResult, task_folder
from headwater_spark.worker.record_processing import planned_columns, process_input
from headwater_spark.worker.record_sender import RefusedRecords
from headwater_spark.worker.restore import read_global_stores, restore_state
from headwater_spark.worker.task_input import (
    ColumnInput,
    PartitionedInput,
    RecordInput,
    TaskInput,
    processed_columns,
)
from headwater_spark.worker.task_session import open_session

_log = structlog.get_logger(__name__)
_DELETED_AT_ONCE = 5_000
"""Entries that a batch checks to delete those whose keys have moved: a few hundredths of a second."""
_BLOCK_BYTES = 512
"""The unit of `st_blocks`, whatever the file system's block size is."""


_ProcessedGroup = tuple[Iterable[OutputRecord], ProcessedPart]
"""Output records, and what was processed."""


class NativeTask:
    """The part of the engine's `Task` that `OpenTask` needs."""

    def __init__(self, program: SubtopologyProgram, refused: RefusedRecords) -> None:
        (self._topic,) = program.sinks.values()
        self._refused = refused
        self._error_handlers = ErrorHandlers(program.settings, _no_dead_letter)

    def process(self, input_: TaskInput, shared_topics: frozenset[str]) -> Iterable[OutputRecord]:
        """Return the output records with timestamps and headers, which Spark's own sink cannot write."""
        topic = self._topic
        if (
            isinstance(input_, ColumnInput)
            and input_.has_columns
            and not self._refused
            and input_.topic_partition[0] not in shared_topics
        ):
            return OutputColumns([TopicColumns(topic, input_.columns())])
        return self._outputs(in_timestamp_order(interleave_records(input_.records(), shared_topics)))

    def process_group(
        self, records: Iterable[InputRecord], awaited: Collection[TopicPartition], _: int
    ) -> tuple[list[OutputRecord], PartitionGroup[InputRecord]]:
        """Return the output records and the group, as the engine's `Task.process_group` does."""
        group = PartitionGroup(records, awaited, _with_own_timestamp)
        return list(self._outputs(group)), group

    def _outputs(self, records: Iterable[InputRecord]) -> Iterable[OutputRecord]:
        topic, records = self._topic, list(records)
        self._check(records)
        return ((topic, None, key, value, time, headers) for _, _, _, time, key, value, headers in records)

    def _check(self, records: Iterable[InputRecord]) -> None:
        """Raise `PoisonRecordError` for a record that the brokers refuse."""
        for record in records if self._refused else ():
            _, _, _, time, key, value, headers = record
            reason = self._refused.reason((self._topic, None, key, value, time, headers))
            if reason is not None:
                self._error_handlers.production_failed(record, self._topic, RefusedRecordError(reason))

    @staticmethod
    def take_dropped() -> tuple[int, str | None]:
        """Return that no record was dropped: Spark SQL's filters are filters, and nothing can fail."""
        return 0, None

    def close(self) -> None:
        """Do nothing: a native task holds no resources."""


def _no_dead_letter(record: OutputRecord) -> None:
    """Reject `record`: a program with a handler that continues is not native."""
    raise AssertionError(record)


def _with_own_timestamp(record: InputRecord) -> InputRecord:
    return record


class OpenTask:
    """A task with its session, local state and operators, kept from batch to batch.

    The constructor does steps 1 and 2, `process_batch` steps 3 to 6. After an exception only `close` may be
    called. `refused` are the records that the brokers refused when an earlier task attempted the batch.
    """

    def __init__(self, request: BatchRequest, partition: int, refused: RefusedRecords | None = None) -> None:
        self.layout_version = request.layout_version
        self.is_slow = False
        """The task writes single records, and none of the last batch was refused: open it again."""
        self._partition = partition
        self._writes_single = refused is not None
        self._refused = RefusedRecords() if refused is None else refused
        self._session = open_session(request, partition, single=refused is not None)
        self._is_fenced = request.exactly_once
        self._proof = self._session.proof
        self._folder = task_folder(request.state_folder, request.subtopology, partition)
        self._state = LocalState(self._folder) if request.program.has_state else MemoryState()
        self._opened = 1
        self._restored = restore_state(request, partition, self._state, self._session)
        self._task: Task | NativeTask = (
            NativeTask(request.program, self._refused)
            if request.is_native
            else Task(
                request.program,
                partition,
                self._state,
                read_global_stores(request),
                _node_logger,
                refusal=no_refusal if refused is None else refused.reason,
            )
        )
        self._moved = _moved_entries(request, partition, self._state, self._session.metadata)

    def process_batch(self, request: BatchRequest, input_: TaskInput, *, tick: bool) -> BatchResult:
        """Process and commit the task's part of a batch; with `tick` also without records, for punctuation.

        Raises:
            OutdatedStateError: Another process has committed a batch of the task since it was opened.
            TaskMigrated: A record's partition does not exist yet.
            PoisonRecordError: A record cannot be processed, and the exception handlers fail.
            RecordsRefusedError: The brokers refuse records of the batch.
            KafkaException: Kafka fails.
        """
        if self._proof is not None:
            self._proof.begin_batch(request)
        fresh = input_.starting_at(self._session.offsets)
        if self._session.has_positions:
            fresh = RecordInput(without_read(fresh.records(), self._session.positions))
        if not fresh and not tick:
            version = self._session.metadata.state_version
            return BatchResult(partition=self._partition, skipped=len(input_), state_version=version)
        if isinstance(self._task, Task):
            self._task.resize_cache(cache_bytes(request))
        awaited = frozenset(each for each in request.awaited if request.task_of(each[1]) == self._partition)
        if awaited:
            return self._process_group(request, fresh, awaited, len(input_) - len(fresh), tick=tick)
        part = ProcessedPart(len(fresh), *fresh.progress())
        read_global_stores(request)
        deleted = self._delete_moved(request)
        outputs = self._process(fresh, request.shared_topics)
        written = self._commit(request, [*deleted, *outputs] if deleted else outputs, part)
        return self._result(part, skipped=len(input_) - len(fresh), written=written)

    @property
    def current_record(self) -> InputRecord:
        """The input record that is processed; `NO_RECORD` if records are not processed one by one."""
        return self._task.context.current.record if isinstance(self._task, Task) else NO_RECORD

    def close(self) -> None:
        """Release the task; records that were not committed are discarded.

        An error of users' `close` is logged: it must not replace the failure because of which the task is
        closed, and fails no batch.
        """
        self._session.producer.abort()
        try:
            self._task.close()
        except Exception as error:  # noqa: BLE001 - users' classes raise anything
            _log.warning("processor not closed", task=self._folder.name, reason=describe_cause(error))
        if isinstance(self._state, LocalState):
            self._state.release()

    def _process_group(
        self,
        request: BatchRequest,
        fresh: TaskInput,
        awaited: frozenset[TopicPartition],
        skipped: int,
        *,
        tick: bool,
    ) -> BatchResult:
        """Process and commit what is first in time; hold the other records back."""
        read_global_stores(request)
        deleted = self._delete_moved(request)
        columns = None if self._refused else planned_columns(fresh, request.shared_topics)
        if columns is not None and isinstance(self._task, Task):
            outputs, part = self._process_columns(self._task, columns, awaited)
        else:
            outputs, part = self._process_in_order(request, fresh, awaited)
        outputs = [*deleted, *outputs] if deleted else outputs
        has_result = part.offsets or tick or next(iter(outputs), None) is not None
        written = self._commit(request, outputs, part) if has_result else 0
        return self._result(part, skipped=skipped, written=written)

    @staticmethod
    def _process_columns(
        task: Task, columns: ColumnInput | PartitionedInput, awaited: frozenset[TopicPartition]
    ) -> _ProcessedGroup:
        partitions = columns.partition_columns()
        outputs, held_back = task.process_partitions(partitions, awaited, time.time_ns() // 1_000_000)
        return outputs, processed_columns(partitions, held_back)

    def _process_in_order(
        self, request: BatchRequest, fresh: TaskInput, awaited: frozenset[TopicPartition]
    ) -> _ProcessedGroup:
        shared = request.shared_topics
        records = in_processing_order(fresh.records(), shared)
        outputs, group = self._task.process_group(
            without_task_headers(records, shared), awaited, time.time_ns() // 1_000_000
        )
        part = processed_part(records, group.held_back, shared, self._session.positions)
        return outputs, part

    def _result(self, part: ProcessedPart, *, skipped: int, written: int) -> BatchResult:
        restored, self._restored = self._restored, 0
        opened, self._opened = self._opened, 0
        dropped, handler_message = self._task.take_dropped()
        return BatchResult(
            partition=self._partition,
            read=part.read,
            skipped=skipped,
            held_back=tuple((*partition, offset) for partition, offset in part.held_back.items()),
            written=written,
            dropped=dropped,
            handler_message=handler_message,
            stream_time=max(part.times.values(), default=-1),
            restored=restored,
            opened=opened,
            state_bytes=self._state_bytes(),
            state_version=self._session.metadata.state_version,
            committed=self._committed(),
        )

    def _committed(self) -> tuple[tuple[str, int, int, str], ...]:
        """Return what the batch has committed, if another process could replace it."""
        if self._is_fenced:
            return ()
        commits, self._session.committed = self._session.committed, {}
        return tuple((*partition, offset, text) for partition, (offset, text) in commits.items())

    def _process(self, fresh: TaskInput, shared_topics: frozenset[str]) -> Iterable[OutputRecord]:
        task = self._task
        if isinstance(task, NativeTask):
            return task.process(fresh, shared_topics)
        now = time.time_ns() // 1_000_000
        return process_input(task, fresh, shared_topics, now, in_columns=not self._refused)

    def _delete_moved(self, request: BatchRequest) -> list[OutputRecord]:
        """Delete some entries of keys that belong to other processors now; return the changelog records."""
        if self._moved is None:
            return []
        most = _DELETED_AT_ONCE if can_delete_later(request.program) else sys.maxsize
        deleted = self._moved.delete(most, time.time_ns() // 1_000_000)
        if self._moved.are_deleted:
            self._moved = None
            del self._state.metadata[DELETING_KEY]
        return deleted

    def _commit(self, request: BatchRequest, outputs: Iterable[OutputRecord], part: ProcessedPart) -> int:
        """Commit the batch to Kafka, apply it to the local state; return the number of written records."""
        outputs = with_task_header(outputs, request.shared_topics, self._partition)
        version = self._session.metadata.version
        if self._proof is not None:
            self._proof.before_write()
        written = self._session.producer.send(outputs)
        self._state.metadata[BATCH_ID] = secrets.randbits(62) | 1
        self._state.prepare(version)
        offsets = self._offsets_after(request, part)
        metadata = OffsetMetadata(version + 1, dict(self._state.metadata))
        self._session.commit(offsets, part.times, metadata, part.positions)
        self._state.commit(version, self._changelog_offsets(request, outputs, offsets))
        self.is_slow = self._writes_single and not self._refused
        self._refused.clear()
        return written

    def _offsets_after(self, request: BatchRequest, part: ProcessedPart) -> Mapping[TopicPartition, int]:
        """Return the offsets to commit: all records before them are processed.

        Of a partition without a record for the task, that is the end of what was read for it.
        """
        partitions = request.input_partitions(self._partition)
        ends = {
            each: request.end_offsets[each]
            for each in (*partitions, *part.offsets)
            if each in request.end_offsets and each not in part.held_back
        }
        known = self._session.offsets
        read = {each: end for each, end in ends.items() if end > known.get(each, 0)}
        processed = {each: max(offset, ends.get(each, 0)) for each, offset in part.offsets.items()}
        renewed = {each: known[each] for each in ends.keys() & known.keys()} if request.renews_offsets else {}
        # After a tick, the metadata is committed with the unchanged offset of some partition.
        return {**renewed, **read, **processed} or {partitions[0]: known.get(partitions[0], 0)}

    def _changelog_offsets(
        self, request: BatchRequest, written: Iterable[OutputRecord], offsets: Mapping[TopicPartition, int]
    ) -> Mapping[str, int]:
        """Return the offsets where a restore resumes; they may precede the ends by transaction markers."""
        known = self._state.offsets()
        if isinstance(written, OutputColumns):
            of_topic = written.count_by_topic()
            counts = {topic: of_topic.get(topic, 0) for topic in known}
        else:
            topics = [record[0] for record in written] if known else []
            counts = {topic: topics.count(topic) for topic in known}  # they are few: faster than a `Counter`
        after = {topic: known[topic] + count for topic, count in counts.items() if count}
        sources = set(request.program.source_changelogs.values())
        return after | {topic: next_ for (topic, _), next_ in offsets.items() if topic in sources}

    def _state_bytes(self) -> int:
        if not isinstance(self._state, LocalState):
            return 0
        return sum(file.stat().st_blocks for file in self._folder.iterdir()) * _BLOCK_BYTES


def _moved_entries(
    request: BatchRequest, partition: int, state: BatchedState, committed: OffsetMetadata
) -> MovedEntries | None:
    """Return the entries that the task has to delete, because their keys moved; None = there are none."""
    if DELETING_KEY not in committed.clocks:
        # A local state that was behind may have it, although another task has deleted them since then.
        state.metadata.pop(DELETING_KEY, None)
        return None
    state.metadata[DELETING_KEY] = committed.clocks[DELETING_KEY]
    stores, _ = moved_stores(request.program)
    processors = request.processors or Processors(request.tasks, request.tasks)
    return MovedEntries(stores, state, partition, processors)


def cache_bytes(request: BatchRequest) -> int:
    """Return the bound of a task's record cache: its stream thread processes one task at a time."""
    return bytes_per_thread(
        request.program.settings.cache_max_bytes,
        request.stream_threads,
        has_global_thread=bool(request.global_programs),
    )


def _node_logger(node: str) -> Callable[..., None]:
    log: Callable[..., None] = structlog.get_logger(node).info

    def log_printable(event: str, **fields: object) -> None:
        texts = {name: escape_surrogates(value) for name, value in fields.items() if isinstance(value, str)}
        log(escape_surrogates(event), **(fields | texts))

    return log_printable
