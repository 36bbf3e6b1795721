"""The plan of a sub-topology: which records of a batch are processed in columns, without a step per record.

A source can be read in columns if all that its records reach are operators over columns
(`column_operators`), up to sinks and record caches. A cache holds updates back until the batch ends: only the
last one of each key leaves it, and the nodes behind it get this change as before. So a plan needs caches that
have room for the whole batch. If they have not, or if an operator fails, nothing has changed, and the records
are processed one by one: then errors name their record.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from operator import itemgetter

import attrs

from headwater.model.behaviors import (
    Aggregation,
    AggregationKind,
    RunProcessor,
    StoreView,
    StreamAggregate,
    StreamTableJoin,
    TableSource,
    TableTransformValues,
)
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater_spark.engine.column_operators.aggregates import KeyTotals
from headwater_spark.engine.column_operators.expressions import column_functions
from headwater_spark.engine.column_operators.rows import ColumnProcess, NotInColumnsError, Rows, SourceColumns
from headwater_spark.engine.column_operators.stateless import STATELESS, column_sink
from headwater_spark.engine.column_operators.tables import TableUpdates, column_join
from headwater_spark.engine.columns import TopicColumns
from headwater_spark.engine.key_counts import NO_KEY_OR_VALUE
from headwater_spark.engine.partition_columns import PartitionColumns, processing_order
from headwater_spark.engine.program_interface import Serde
from headwater_spark.engine.records import InputRecord
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.task_context import TaskContext

_READS_RECORDS = RunProcessor, TableTransformValues
"""Behaviors of users' classes: a punctuation may be due between any two records."""
_UPDATES_PER_RECORD = 8
"""From here on, it takes less time to update a table between single records than record by record."""
_RECORDS_PER_KEY = 3
"""With fewer records per key, single records are aggregated in less time."""
_NULL_KEY = "null key"


@attrs.frozen
class _Source:
    serdes: tuple[Serde, Serde]
    process: ColumnProcess | None
    tables: tuple[TableUpdates, ...]


class ColumnPlan:
    """Processes batches in columns. `run` returns None, and changes nothing, if a batch has to be records."""

    def __init__(
        self,
        task: TaskContext,
        sources: Mapping[str, _Source],
        totals: Sequence[KeyTotals],
        outputs: list[TopicColumns],
        dropped: list[tuple[str, str, int]],
        *,
        needs_order: bool,
    ) -> None:
        self._task = task
        self._sources = sources
        self._tables = [table for source in sources.values() for table in source.tables]
        self._totals = totals
        self._outputs = outputs
        self._dropped = dropped
        self._needs_order = needs_order
        """Whether rows of one source read what another one has updated."""

    def run(self, partitions: Sequence[PartitionColumns]) -> list[TopicColumns] | None:
        """Process a batch up to its caches and sinks; return the records of the sinks."""
        partitions = sorted((each for each in partitions if len(each)), key=_topic_partition)
        if not partitions or any(
            self._source_of(each) not in self._sources or min(each.times) < 0 for each in partitions
        ):
            return None
        operators: list[TableUpdates | KeyTotals] = [*self._tables, *self._totals]
        for operator in operators:
            operator.start()
        self._outputs.clear()
        self._dropped.clear()
        cache = self._task.record_cache
        for partition in partitions:
            cache.add_topic(partition.topic_partition[0])
        try:
            self._process(partitions)
        except Exception:  # noqa: BLE001 - the records are processed one by one, and one of them fails again
            return None
        if sum(operator.size for operator in operators) > cache.bound:
            return None
        self._apply(partitions)
        return self._outputs.copy()

    def interleaved(self, partitions: Sequence[PartitionColumns]) -> Iterator[InputRecord] | None:
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
            or any(min(each.times) < 0 for each in rest)
        ):
            return None
        for each in partitions:
            self._task.record_cache.add_topic(each.topic_partition[0])
        (table,) = self._tables
        orders = dict(zip(map(_topic_partition, partitions), processing_order(partitions), strict=True))
        (source,) = (source for source in self._sources.values() if source.tables)
        table.start()
        try:
            columns = SourceColumns(rest, [orders[each.topic_partition] for each in rest], *source.serdes)
            table.prepare(columns)
        except Exception:  # noqa: BLE001 - all records are processed one by one, and one of them fails again
            return None
        records = [
            record
            for each in single
            for record in zip(orders[each.topic_partition], each.records(), strict=True)
        ]
        records.sort(key=itemgetter(0))
        return self._between_updates(records, table, columns)

    def _between_updates(
        self, records: Sequence[tuple[int, InputRecord]], table: TableUpdates, columns: SourceColumns
    ) -> Iterator[InputRecord]:
        task = self._task
        latest = list(accumulate(columns.times, max))
        for order, record in (*records, (None, None)):
            end = len(columns) if order is None else bisect_left(columns.order, order)
            if end:
                task.stream_time.now = max(task.stream_time.now, latest[end - 1])
            table.apply_until(end, task.current)
            if record is not None:
                yield record
        if table.dropped:
            task.dropped[table.node, _NULL_KEY] += table.dropped

    def _source_of(self, partition: PartitionColumns) -> str:
        return self._task.program.source(partition.topic_partition[0])

    def _process(self, partitions: Sequence[PartitionColumns]) -> None:
        by_source: dict[str, list[int]] = {}
        for number, partition in enumerate(partitions):
            by_source.setdefault(self._source_of(partition), []).append(number)
        orders: Sequence[Sequence[int]] = [()] * len(partitions)
        if self._needs_order or len(by_source) < len(partitions):
            orders = processing_order(partitions)
        columns = {
            name: SourceColumns(
                [partitions[number] for number in numbers],
                [orders[number] for number in numbers],
                *self._sources[name].serdes,
            )
            for name, numbers in by_source.items()
        }
        for name, each in columns.items():
            for table in self._sources[name].tables:
                table.prepare(each)
        for name, each in columns.items():
            process = self._sources[name].process
            if self._totals and len(each) < _RECORDS_PER_KEY * len(set(each.key_bytes)):
                raise NotInColumnsError
            if process is not None:
                process(each.rows())

    def _apply(self, partitions: Sequence[PartitionColumns]) -> None:
        task = self._task
        for table in self._tables:
            table.apply()
            self._dropped.append((table.node, _NULL_KEY, table.dropped))
        for totals in self._totals:
            totals.apply()
            self._dropped.append((totals.node, NO_KEY_OR_VALUE, totals.dropped))
        for node, reason, number in self._dropped:
            if number:
                task.dropped[node, reason] += number
        last = max(partitions, key=_largest_time)  # the last one of those with the same time
        task.stream_time.now = max(task.stream_time.now, _largest_time(last))
        task.current.record = last.record(len(last) - 1)


def column_plan(task: TaskContext) -> ColumnPlan | None:
    """Return the plan of a task; None = its records have to be processed one by one."""
    nodes = task.program.nodes
    if (
        not task.error_handlers.fails_on_processing_error
        or task.append != task.outputs.append
        or any(
            isinstance(node, ProcessorNode) and isinstance(node.behavior, _READS_RECORDS) for node in nodes
        )
    ):
        return None
    try:
        return _Planning(task).plan()
    except NotInColumnsError:
        return None


class _Planning:
    def __init__(self, task: TaskContext) -> None:
        self._task = task
        self._nodes = task.program.nodes
        self._by_name = {node.name: node for node in self._nodes}
        self._children: dict[str, list[Node]] = {node.name: [] for node in self._nodes}
        for node in self._nodes:
            for parent in () if isinstance(node, SourceNode) else node.parents:
                self._children[parent].append(node)
        self._function_of = column_functions(task)
        self._outputs: list[TopicColumns] = []
        self._dropped: list[tuple[str, str, int]] = []
        self._tables: dict[str, TableUpdates] = {}
        """Store → its updates"""
        self._joined: set[str] = set()
        self._own_stores: set[str] = set()
        """The stores of the source whose nodes are planned."""
        self._totals: list[KeyTotals] = []
        self._topics: set[str] = set()

    def plan(self) -> ColumnPlan:
        """Raise `NotInColumnsError` if there is no plan."""
        sources = [node for node in self._nodes if isinstance(node, SourceNode)]
        tables = {source.name: tuple(self._tables_of(source)) for source in sources}
        found: dict[str, _Source] = {}
        for source in sources:
            try:
                found[source.name] = self._source(source, tables[source.name])
            except NotInColumnsError:
                if len(self._tables) != 1:
                    raise
        if not found:
            raise NotInColumnsError
        if self._joined:  # their reads are not noted: no entry may leave a cache while it is flushed
            self._check_only_tables_are_cached()
        if self._totals and (self._tables or len(self._totals) > 1):
            raise NotInColumnsError  # no case is known that needs both
        return ColumnPlan(
            self._task, found, self._totals, self._outputs, self._dropped, needs_order=bool(self._joined)
        )

    def _tables_of(self, source: SourceNode) -> Iterable[TableUpdates]:
        for node in self._children[source.name]:
            if isinstance(node, ProcessorNode) and isinstance(node.behavior, TableSource):
                store = node.behavior.store
                typed = None if store is None else self._task.typed_store(store)
                if (
                    store is None
                    or store in self._tables
                    or node.parents != (source.name,)
                    or type(typed) is not TimestampedKeyValueBytes
                    or not isinstance(typed.below, Cached)
                ):
                    raise NotInColumnsError
                table = self._tables[store] = TableUpdates(node.name, typed, typed.below)
                yield table

    def _source(self, source: SourceNode, tables: tuple[TableUpdates, ...]) -> _Source:
        reads = source.reads
        if reads is not None and (
            reads.timestamp is not None or reads.foreign_key is not None or reads.carries_changes
        ):
            raise NotInColumnsError
        own = {table.node for table in tables}
        self._own_stores = {store for store, table in self._tables.items() if table.node in own}
        children = [self._operator(node) for node in self._children[source.name] if not _is_table(node)]
        serdes = serdes_of(reads, self._task.program)
        for table in tables:
            if table.typed.key_serde is not serdes[0]:
                raise NotInColumnsError
        return _Source(serdes, _forward_to(children) if children else None, tables)

    def _operator(self, node: Node) -> ColumnProcess:
        if isinstance(node, SourceNode) or len(node.parents) != 1:
            raise NotInColumnsError  # the rows of several parents would be in another order
        if isinstance(node, SinkNode):
            return self._sink(node)
        behavior = node.behavior
        build = STATELESS.get(type(behavior))
        if build is not None:
            return build(behavior, self._forward(node), self._function_of)
        match behavior:
            case StreamTableJoin(table=StoreView() as view, buffer=None):
                return self._join(node, behavior, view.store)
            case StreamAggregate(window=None) if node.name in self._task.column_totals:
                self._check_functions(behavior.aggregation)
                totals = KeyTotals(node.name, *self._task.column_totals[node.name])
                self._totals.append(totals)
                return totals.add
        raise NotInColumnsError

    def _forward(self, node: ProcessorNode) -> ColumnProcess:
        return _forward_to([self._operator(child) for child in self._children[node.name]])

    def _sink(self, node: SinkNode) -> ColumnProcess:
        program = self._task.program
        topic = program.topic(node.name)
        if topic is None or topic in self._topics or program.partition(node.name) is not None:
            raise NotInColumnsError
        self._topics.add(topic)
        return column_sink(topic, serdes_of(node.writes, program), self._outputs.append)

    def _join(self, node: ProcessorNode, behavior: StreamTableJoin, store: str) -> ColumnProcess:
        table = self._tables.get(store)
        if table is None or store in self._joined or store in self._own_stores:
            raise NotInColumnsError
        self._joined.add(store)
        joined = self._function_of(behavior.value, "left", "right", "key")

        def drop(number: int) -> None:
            self._dropped.append((node.name, NO_KEY_OR_VALUE, number))

        return column_join(behavior, table, joined, self._forward(node), drop)

    def _check_functions(self, aggregation: Aggregation) -> None:
        if aggregation.kind is not AggregationKind.COUNT:
            self._function_of(aggregation.add, "key", "value", "total")
        if aggregation.kind is AggregationKind.AGGREGATE:
            self._function_of(aggregation.init)

    def _check_only_tables_are_cached(self) -> None:
        for store in self._task.program.stores:
            cached = getattr(self._task.typed_store(store.name), "below", None)
            if isinstance(cached, Cached) and store.name not in self._tables:
                raise NotInColumnsError


def _is_table(node: Node) -> bool:
    return isinstance(node, ProcessorNode) and isinstance(node.behavior, TableSource)


def _forward_to(children: Sequence[ColumnProcess]) -> ColumnProcess:
    if len(children) == 1:
        return children[0]

    def each(rows: Rows) -> None:
        for child in children:
            child(rows)

    return each


def _topic_partition(columns: PartitionColumns) -> tuple[str, int]:
    return columns.topic_partition


def _largest_time(columns: PartitionColumns) -> int:
    return max(columns.times)
