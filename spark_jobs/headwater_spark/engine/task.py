"""A task: one sub-topology for one partition. Records in, records out.

    task = Task(program, partition, state)
    outputs = task.process(records, wall_clock_ms)    # records of sinks, repartition and changelog topics

`process` leaves clocks and schedules in `state.metadata` and the changes of stores in `state.changes()`. The
caller persists them (see `task_state`). After a failed batch, open the state again and create a new task.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from headwater_spark.engine.columns import ColumnCounter, Columns, OutputColumns, key_column_counter
from headwater_spark.engine.counted_windows import direct_sink, window_column_counter
from headwater_spark.engine.error_handlers import PoisonRecordError, Refusal, no_refusal
from headwater_spark.engine.key_counts import (
    NEGATIVE_TIMESTAMP,
    NO_KEY_OR_VALUE,
    KeyCounter,
    KeyCounts,
    KeyedColumns,
    WindowCounter,
)
from headwater_spark.engine.program_interface import Program
from headwater_spark.engine.record_order import (
    PartitionGroup,
    are_of_one_partition,
    heads_in_timestamp_order,
    in_timestamp_order,
)
from headwater_spark.engine.records import UNSET, HeadRecord, InputRecord, OutputRecord, TopicPartition, Value
from headwater_spark.engine.sources_and_sinks import ProcessInput
from headwater_spark.engine.stores.backend import BatchedState
from headwater_spark.engine.task_context import LoggerOf, TaskContext, no_logger
from headwater_spark.engine.wiring import connect_nodes
from headwater_spark.processors import PunctuationType

if TYPE_CHECKING:
    from headwater_spark.engine.partition_columns import PartitionColumns

__all__ = ["PoisonRecordError", "Task"]

_TOPIC: Final = 0
_INPUT_RECORD: Final = 7
_CACHE_OF_WINDOWS: Final = 2**18
"""From so many bytes on, windows are counted in columns in less time than record by record."""

Head = InputRecord | HeadRecord
"""An input record as it is, or as its source has read it (`NodeGraph.head_readers`)."""
ProcessHead = Callable[[Value], None]
"""Processes the heads of one topic: all of them are input records, or all are head records."""


class Task:
    """Executes a program on the records of one partition.

    Args:
        global_stores: Typed stores of global tables by name, filled by the global task of this process.
        logger: How `print` and `peek` log.
        refusal: Returns why the brokers refuse an output record; None = they do not. Such records are given
            to the production exception handler.
    """

    def __init__(
        self,
        program: Program,
        partition: int,
        state: BatchedState,
        global_stores: Mapping[str, Value] | None = None,
        logger: LoggerOf = no_logger,
        *,
        refusal: Refusal = no_refusal,
    ) -> None:
        from headwater_spark.engine.column_planning import column_plan  # noqa: PLC0415 - numpy starts threads

        self.program = program
        self.state = state
        self.context = TaskContext(program, partition, state, global_stores or {}, logger, refusal=refusal)
        self._graph = connect_nodes(self.context)
        self._process_by_topic: dict[str, ProcessInput] = {}
        self._process_head_by_topic: dict[str, ProcessHead] = {}
        self.column_counter: ColumnCounter | None = key_column_counter(self.context) or window_column_counter(
            self.context
        )
        """Set if `process_columns` gives the same result as `process`, with columns that it can count."""
        self.context.direct_sink = direct_sink(self.context)
        self._column_plan = column_plan(self.context)
        self._is_open = False
        self._reported_dropped = 0

    def process(self, records: Iterable[InputRecord], wall_clock_ms: int) -> list[OutputRecord]:
        """Process a batch: its records, the punctuations that are due, and the flush of the caches.

        Args:
            records: Ordered by offset within each partition; partitions in any order.
            wall_clock_ms: The wall-clock time of the whole batch.

        Returns:
            The records to write, in order.

        Raises:
            PoisonRecordError: A record failed, and the exception handler's answer is to fail.
        """
        self._begin_batch(wall_clock_ms)
        if self._graph.head_readers and self._need_heads(records := list(records)):
            heads = heads_in_timestamp_order(records, self._read_head)
            self._process_records(heads, self._process_head_of)
        else:
            self._process_records(in_timestamp_order(records), self._process_of)
        return self._end_batch(wall_clock_ms)

    def process_group(
        self, records: Iterable[InputRecord], awaited: Collection[TopicPartition], wall_clock_ms: int
    ) -> tuple[list[OutputRecord], PartitionGroup[Head]]:
        """Process a batch as `process` does, until a partition in `awaited` has no record left.

        Returns:
            The records to write, and the group: it knows which records were held back.

        Raises:
            PoisonRecordError: A record failed, and the exception handler's answer is to fail.
        """
        self._begin_batch(wall_clock_ms)
        group: PartitionGroup[Head] = PartitionGroup(records, awaited, self._read_head)
        self._process_records(group, self._process_head_of)
        return self._end_batch(wall_clock_ms), group

    def process_partitions(
        self,
        partitions: "Sequence[PartitionColumns]",
        awaited: Collection[TopicPartition],
        wall_clock_ms: int,
    ) -> tuple[Iterable[OutputRecord], Mapping[TopicPartition, int]]:
        """Process a batch as `process_group` does; its records are in columns.

        Returns:
            The records to write, and partition → number of records at its end that were held back.
        """
        from headwater_spark.engine.partition_columns import held_back  # noqa: PLC0415 - numpy starts threads

        rest = held_back(partitions, awaited)
        first = [each.first_rows(len(each) - rest.get(each.topic_partition, 0)) for each in partitions]
        plan, head_readers = self._column_plan, self._graph.head_readers
        self._begin_batch(wall_clock_ms)
        if plan is not None and not (head_readers and rest):
            columns = plan.run(first)
            if columns is not None:
                return OutputColumns(columns, self._end_batch(wall_clock_ms)), rest
        if plan is not None and not head_readers:
            records = plan.interleave_records(first)
            if records is not None:
                self._process_records(records, self._process_of)
                return self._end_batch(wall_clock_ms), rest
        if not awaited or not head_readers:
            return self.process([record for each in first for record in each.records()], wall_clock_ms), rest
        # A record that is skipped holds nothing back: what is held back is known when records are read.
        every = [record for each in partitions for record in each.records()]
        outputs, group = self.process_group(every, awaited, wall_clock_ms)
        return outputs, group.held_back

    @property
    def is_columnar(self) -> bool:
        """Return whether `process_partitions` may process records without a step for each."""
        return self._column_plan is not None

    def process_key_counts(self, counts: KeyCounts, wall_clock_ms: int) -> list[OutputRecord]:
        """Process a batch given as counts per key; only for a task that `can_process_key_counts`."""
        if self.key_counter is None or not self.can_process_key_counts(counts):
            raise ValueError(f"{self.context.task_id} does not only count these records")
        node, deserialize_key = self.key_counter.node, self.key_counter.deserialize_key
        add_count, stream_time = self.key_counter.count.add, self.context.stream_time
        self._begin_batch(wall_clock_ms)
        if counts.by_key:
            self.context.record_cache.add_topic(counts.by_key[0][3][_TOPIC])
        self.key_counter.count.reserve(counts.cache_bytes)
        stream_time.now = max(stream_time.now, counts.latest)
        if counts.dropped:
            self.context.dropped[node, NO_KEY_OR_VALUE] += counts.dropped
        for key, number, latest, record in counts.by_key:
            add_count(deserialize_key(key), number, latest, record)
        return self._end_batch(wall_clock_ms)

    def process_columns(self, columns: Sequence[Columns], wall_clock_ms: int) -> OutputColumns:
        """Process a batch in columns, without negative timestamps, with the `column_counter`."""
        if self.column_counter is None:
            raise ValueError(f"{self.context.task_id} does not only count")
        self._begin_batch(wall_clock_ms)
        stream_time = self.context.stream_time
        stream_time.now = max(stream_time.now, *(max(times, default=0) for _, _, times, _ in columns))
        outputs = self.column_counter.count(columns)
        self._end_batch(wall_clock_ms)
        return outputs

    def process_windows(self, columns: KeyedColumns, wall_clock_ms: int) -> list[OutputRecord] | None:
        """Process a batch in columns; only for a task with a `window_counter`.

        None = nothing was processed: single records may have other results.
        """
        counter = self.window_counter
        if counter is None:
            raise ValueError(f"{self.context.task_id} does not only count in windows")
        self._begin_batch(wall_clock_ms)
        self.context.record_cache.add_topic(columns.topic)
        dropped = counter.counts.count(columns, counter.deserialize_key)
        if dropped is None:
            return None
        for reason, number in dropped.items():
            if number:
                self.context.dropped[counter.node, reason] += number
        stream_time = self.context.stream_time
        stream_time.now = max(stream_time.now, int(columns.times.max(initial=UNSET)))
        return self._end_batch(wall_clock_ms)

    @property
    def counts_columns(self) -> bool:
        """Return whether a batch may be counted: by `process_key_counts`, `_windows` or `_columns`."""
        counters = self.key_counter, self.window_counter, self.column_counter
        return any(counter is not None for counter in counters)

    def drop_negative_times(self, topic: str, number: int) -> None:
        """Count records of a source topic that were dropped because of their negative timestamps."""
        if number:
            self.context.dropped[self.program.source(topic), NEGATIVE_TIMESTAMP] += number

    @property
    def window_counter(self) -> WindowCounter | None:
        """Set if `process_windows` gives the same result as `process`."""
        return self._graph.window_counter

    @property
    def can_process_windows(self) -> bool:
        """Return whether `process_windows` gives the same result as `process`, and costs less.

        Each time that a cache is full, rows are divided once more: with a small one, that costs more.
        """
        return self.window_counter is not None and self.context.record_cache.bound >= _CACHE_OF_WINDOWS

    def can_process_key_counts(self, counts: KeyCounts) -> bool:
        """Return whether `process_key_counts` gives the result of `process`: no update leaves the cache."""
        return self.key_counter is not None and counts.cache_bytes <= self.context.record_cache.bound

    def resize_cache(self, bound: int) -> None:
        """Set the bound of the record cache, in bytes, for the next batches."""
        self.context.record_cache.resize(bound)

    @property
    def key_counter(self) -> KeyCounter | None:
        """Set if `process_key_counts` gives the same result as `process`, as long as the cache has room."""
        return self._graph.key_counter

    def restore(self, topic: str, records: Iterable[InputRecord]) -> None:
        """Apply records of a changelog topic to its store, as changes of the running batch.

        `topic` may be a source topic that serves as changelog.

        Raises:
            KeyError: No store is restored from the topic.
        """
        restore = self.context.stores.restore_of(topic)
        for _, _, _, timestamp, key, value, _ in records:
            if key is not None:
                restore(key, value, timestamp)
        self.context.clocks.save()

    def take_dropped(self) -> tuple[int, str | None]:
        """Return the number of records dropped or skipped since the last call, and the last failure."""
        error_handlers = self.context.error_handlers
        total, latest = self.context.count_dropped(), error_handlers.latest
        number, self._reported_dropped = total - self._reported_dropped, total
        error_handlers.latest = None
        return number, latest

    @property
    def stores(self) -> Mapping[str, Value]:
        """Typed stores by name: what a global task shares with the other tasks."""
        return self.context.stores.all()

    def close(self) -> None:
        """Close users' processors."""
        self.context.close_nodes()

    def _begin_batch(self, wall_clock_ms: int) -> None:
        self.context.wall_clock_ms = wall_clock_ms
        if not self._is_open:
            self._is_open = True
            self.context.open_nodes()

    def _process_records(
        self, records: Iterable[Value], process_of: Callable[[str], Callable[[Value], None]]
    ) -> None:
        schedules = self.context.punctuations.schedules(PunctuationType.STREAM_TIME)
        topic = ""
        process: Callable[[Value], None] = _no_source
        for record in records:
            if record[_TOPIC] != topic:
                topic = record[_TOPIC]
                process = process_of(topic)
            try:
                process(record)
            except PoisonRecordError:
                raise
            except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
                self.context.current.context = None
                self.context.error_handlers.processing_failed(_input_record(record), error)
            if schedules:
                self._punctuate(PunctuationType.STREAM_TIME, self.context.stream_time.now)

    def _end_batch(self, wall_clock_ms: int) -> list[OutputRecord]:
        self._punctuate(PunctuationType.WALL_CLOCK_TIME, wall_clock_ms)
        try:
            self.context.end_batch()
            self.context.stores.flush()
        except PoisonRecordError:
            raise
        except Exception as error:  # noqa: BLE001 - expressions and users' classes raise anything
            self.context.error_handlers.flush_failed(self.context.current.record, error)
        self.context.clocks.save()
        outputs = self.context.outputs.copy()
        self.context.outputs.clear()
        return outputs

    def _punctuate(self, kind: PunctuationType, now: int) -> None:
        for schedule in self.context.punctuations.due(kind, now):
            try:
                schedule.call(now)
            except Exception as error:  # noqa: BLE001 - users' callbacks raise anything
                self.context.current.context = None
                self.context.error_handlers.punctuation_failed(self.context.task_id, error)

    def _need_heads(self, records: Collection[InputRecord]) -> bool:
        """Return whether records must be read before they are ordered, and processed."""
        return any(
            reader.extracts_timestamp for reader in self._graph.head_readers.values()
        ) or not are_of_one_partition(records)

    def _read_head(self, record: InputRecord) -> Head | None:
        reader = self._graph.head_readers.get(self.program.source(record[_TOPIC]))
        return record if reader is None else reader.read(record)

    def _process_head_of(self, topic: str) -> ProcessHead:
        known = self._process_head_by_topic.get(topic)
        if known is None:
            process = self._process_of(topic)
            reader = self._graph.head_readers.get(self.program.source(topic))
            known = self._process_head_by_topic[topic] = process if reader is None else reader.process
        return known

    def _process_of(self, topic: str) -> ProcessInput:
        known = self._process_by_topic.get(topic)
        if known is None:
            known = self._process_by_topic[topic] = self._graph.sources[self.program.source(topic)]
            self.context.record_cache.add_topic(topic)
        return known


def _input_record(head: Value) -> InputRecord:
    """Return the input record of a `Head`."""
    record: InputRecord = head[_INPUT_RECORD] if len(head) > _INPUT_RECORD else head
    return record


def _no_source(record: Value) -> None:
    """Stand for the source of the first topic until it is known."""
    raise AssertionError(record)
