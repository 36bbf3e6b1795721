"""Processes batches of a sub-topology in columns, as `column_planning` has planned it.

Nothing changes before all of a batch is computed: if the caches have no room for the whole batch, or if an
operator fails, the records are processed one by one. Then updates leave a full cache in the order of Kafka
Streams, and errors name their record.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING

import attrs
import numpy as np

from headwater_spark.engine.column_operators.aggregates import KeyTotals
from headwater_spark.engine.column_operators.rows import ColumnProcess, SourceColumns
from headwater_spark.engine.column_operators.stream_joins import StreamJoin
from headwater_spark.engine.column_operators.tables import TableUpdates
from headwater_spark.engine.columns import TopicColumns
from headwater_spark.engine.key_counts import NO_KEY, NO_KEY_OR_VALUE
from headwater_spark.engine.partition_columns import PartitionColumns, can_order, processing_order
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import InputRecord
from headwater_spark.engine.task_context import TaskContext

if TYPE_CHECKING:
    from headwater_spark.engine.window_columns import Numbers

_UPDATES_PER_RECORD = 8
"""From here on, it takes less time to update a table between single records than record by record."""
_RECORDS_PER_KEY = 3
"""With fewer records per key, single records are aggregated in less time."""
_RECORDS_OF_JOIN = 32
"""With fewer records in a batch, a join of two streams takes less time record by record."""
_MOST_SKIPPED = 64
"""Batches between two attempts, if all attempts fail."""


@attrs.frozen
class PlannedSource:
    """A source: its serdes, what processes its rows (None = tables only), and its tables."""

    serdes: tuple[Serde, Serde]
    process: ColumnProcess | None
    tables: tuple[TableUpdates, ...]


@attrs.define
class _Attempts:
    """Decides which batches are attempted: after each failure in a row, twice as many are skipped.

    A failed attempt costs as much as its batch. For some tasks all attempts fail, as for one whose totals are
    objects.
    """

    _skipped: int = 0
    _left: int = 0

    def skip_batch(self) -> bool:
        """Return whether the next batch is not attempted."""
        self._left -= 1
        return self._left >= 0

    def note_failure(self) -> None:
        self._left = self._skipped = min(max(1, 2 * self._skipped), _MOST_SKIPPED)

    def note_success(self) -> None:
        self._left = self._skipped = 0


class ColumnPlan:
    """Processes batches in columns. `run` returns None, and changes nothing, if a batch has to be records."""

    def __init__(
        self,
        task: TaskContext,
        sources: Mapping[str, PlannedSource],
        totals: Sequence[KeyTotals],
        joins: Sequence[StreamJoin],
        *,
        outputs: list[TopicColumns],
        dropped: list[tuple[str, str, int]],
        needs_order: bool,
    ) -> None:
        self._task = task
        self._sources = sources
        self._tables = [table for source in sources.values() for table in source.tables]
        self._totals = totals
        self._joins = joins
        self._outputs = outputs
        self._dropped = dropped
        self._needs_order = needs_order
        """Whether rows of one source read what another one has updated."""
        self._attempts = _Attempts()

    def run(self, partitions: Sequence[PartitionColumns]) -> list[TopicColumns] | None:
        """Process a batch up to its caches and sinks; return the records of the sinks."""
        partitions = sorted((each for each in partitions if len(each)), key=_topic_partition)
        if not partitions or any(
            self._source_of(each) not in self._sources or each.times.min() < 0 for each in partitions
        ):
            return None
        if not can_order(partitions):
            return None
        if self._joins and sum(map(len, partitions)) < _RECORDS_OF_JOIN:
            return None
        if self._attempts.skip_batch():
            return None
        columns = self._source_columns(partitions)
        if self._totals and any(map(_has_few_records_per_key, columns.values())):
            return None
        for each in partitions:
            self._task.record_cache.add_topic(each.topic_partition[0])
        try:
            outputs = self._attempt(columns, partitions)
        finally:
            self._forget_batch()
        if outputs is None:
            self._attempts.note_failure()
        else:
            self._attempts.note_success()
        return outputs

    def interleave_records(self, partitions: Sequence[PartitionColumns]) -> Iterator[InputRecord] | None:
        """Return the records that have to be processed one by one; None = all of them, as they are.

        The iterator updates the table before each record, and at its end. Some records may be processed one
        by one if all others are updates of one table.
        """
        partitions = sorted((each for each in partitions if len(each)), key=_topic_partition)
        single = [each for each in partitions if self._source_of(each) not in self._sources]
        rest = [each for each in partitions if self._source_of(each) in self._sources]
        numbers = sum(map(len, single)), sum(map(len, rest))
        if (
            not single
            or numbers[0] * _UPDATES_PER_RECORD > numbers[1]
            or len(self._tables) != 1
            or any(source.process is not None for source in self._sources.values())
            or any(each.times.min() < 0 for each in rest)
            or not can_order(partitions)
        ):
            return None
        if self._attempts.skip_batch():
            return None
        for each in partitions:
            self._task.record_cache.add_topic(each.topic_partition[0])
        (table,) = self._tables
        orders = dict(zip(map(_topic_partition, partitions), processing_order(partitions), strict=True))
        (source,) = (source for source in self._sources.values() if source.tables)
        try:
            columns = SourceColumns(rest, [orders[each.topic_partition] for each in rest], *source.serdes)
            table.prepare(columns)
        except Exception:  # noqa: BLE001 - all records are processed one by one, and one of them fails again
            self._forget_batch()
            self._attempts.note_failure()
            return None
        self._attempts.note_success()
        records = [
            record
            for each in single
            for record in zip(orders[each.topic_partition].tolist(), each.records(), strict=True)
        ]
        records.sort(key=itemgetter(0))
        return self._between_updates(records, table, columns)

    def _between_updates(
        self, records: Sequence[tuple[int, InputRecord]], table: TableUpdates, columns: SourceColumns
    ) -> Iterator[InputRecord]:
        task = self._task
        latest, columns_order = np.maximum.accumulate(columns.times), columns.order.tolist()
        for order, record in (*records, (None, None)):
            end = len(columns) if order is None else bisect_left(columns_order, order)
            if end:
                task.stream_time.now = max(task.stream_time.now, int(latest[end - 1]))
            table.apply_until(end, task.current)
            if record is not None:
                yield record
        if table.dropped:
            task.dropped[table.node, NO_KEY] += table.dropped
        self._forget_batch()

    def _source_of(self, partition: PartitionColumns) -> str:
        return self._task.program.source(partition.topic_partition[0])

    def _source_columns(self, partitions: Sequence[PartitionColumns]) -> Mapping[str, SourceColumns]:
        by_source: dict[str, list[int]] = {}
        for number, partition in enumerate(partitions):
            by_source.setdefault(self._source_of(partition), []).append(number)
        orders: Sequence[Numbers] = [np.empty(0, np.int64)] * len(partitions)
        if self._needs_order or len(by_source) < len(partitions):
            orders = processing_order(partitions)
        return {
            name: SourceColumns(
                [partitions[number] for number in numbers],
                [orders[number] for number in numbers],
                *self._sources[name].serdes,
            )
            for name, numbers in by_source.items()
        }

    def _attempt(
        self, columns: Mapping[str, SourceColumns], partitions: Sequence[PartitionColumns]
    ) -> list[TopicColumns] | None:
        try:
            self._process(columns)
        except Exception:  # noqa: BLE001 - the records are processed one by one, and one of them fails again
            return None
        size = sum(table.size for table in self._tables) + sum(totals.size for totals in self._totals)
        if size > self._task.record_cache.bound:
            return None
        self._apply(partitions)
        return self._outputs.copy()

    def _process(self, columns: Mapping[str, SourceColumns]) -> None:
        for name, each in columns.items():
            for table in self._sources[name].tables:
                table.prepare(each)
        for name, each in columns.items():
            process = self._sources[name].process
            if process is not None:
                process(each.rows())
        for join in self._joins:
            join.join()

    def _apply(self, partitions: Sequence[PartitionColumns]) -> None:
        task = self._task
        for table in self._tables:
            table.apply()
            self._dropped.append((table.node, NO_KEY, table.dropped))
        for totals in self._totals:
            totals.apply()
            self._dropped.append((totals.node, NO_KEY_OR_VALUE, totals.dropped))
        for join in self._joins:
            join.apply()
        for node, reason, number in self._dropped:
            if number:
                task.dropped[node, reason] += number
        last = max(reversed(partitions), key=_largest_time)  # the last one of those with the same time
        task.stream_time.now = max(task.stream_time.now, _largest_time(last))
        task.current.record = last.record(len(last) - 1)

    def _forget_batch(self) -> None:
        """Release the records of the batch: a task may wait long for the next one."""
        for table in self._tables:
            table.clear()
        for totals in self._totals:
            totals.clear()
        for join in self._joins:
            join.clear()
        self._outputs.clear()
        self._dropped.clear()


def _has_few_records_per_key(columns: SourceColumns) -> bool:
    return len(columns) < _RECORDS_PER_KEY * len(columns.keys.different)


def _topic_partition(columns: PartitionColumns) -> tuple[str, int]:
    return columns.topic_partition


def _largest_time(columns: PartitionColumns) -> int:
    return int(columns.times.max())
