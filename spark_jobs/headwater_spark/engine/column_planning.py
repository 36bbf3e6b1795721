"""Plans a sub-topology: which of its records are processed in columns, without a step per record.

A source can be read in columns if all that its records reach are operators over columns
(`column_operators`), up to sinks and record caches. A cache holds updates back until the batch ends: only the
last one of each key leaves it, and the nodes behind it get this change as before. An inner join of two
streams gets the records of both sources, and is computed when all sources are read.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from headwater.model.behaviors import (
    Aggregation,
    AggregationKind,
    JoinWindowed,
    PassThrough,
    RunProcessor,
    StreamAggregate,
    StreamStreamJoin,
    StreamTableJoin,
    TableSource,
    TableTableJoin,
    TableTransformValues,
)
from headwater.model.formats import StoreView
from headwater.model.nodes import Node, ProcessorNode, SinkNode, SourceNode
from headwater_spark.engine.column_operators.aggregates import KeyTotals
from headwater_spark.engine.column_operators.rows import ColumnProcess, NotInColumnsError, Rows
from headwater_spark.engine.column_operators.stateless import STATELESS, column_functions, column_sink
from headwater_spark.engine.column_operators.stream_joins import JoinSide, StreamJoin
from headwater_spark.engine.column_operators.tables import TableUpdates, column_join
from headwater_spark.engine.column_plan import ColumnPlan, PlannedSource
from headwater_spark.engine.key_counts import NO_KEY_OR_VALUE
from headwater_spark.engine.operators.cached_aggregate import Totals
from headwater_spark.engine.records import Value
from headwater_spark.engine.sources_and_sinks import serdes_of
from headwater_spark.engine.stores.cached import Cached
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes
from headwater_spark.engine.stores.windows import WindowBytes
from headwater_spark.engine.task_context import TaskContext

if TYPE_CHECKING:
    from headwater_spark.engine.columns import TopicColumns

_READS_RECORDS = RunProcessor, TableTransformValues
"""Behaviors of users' classes: a punctuation may be due between any two records."""


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
        return _ColumnPlanner(task).plan()
    except NotInColumnsError:
        return None


class _ColumnPlanner:
    """Builds the operators of a program over columns, or finds that one has none."""

    def __init__(self, task: TaskContext) -> None:
        self._task = task
        self._nodes = task.program.nodes
        self._children: dict[str, list[Node]] = {node.name: [] for node in self._nodes}
        for node in self._nodes:
            for parent in () if isinstance(node, SourceNode) else node.parents:
                self._children[parent].append(node)
        self._function_of = column_functions(task)
        self._outputs: list[TopicColumns] = []
        self._dropped: list[tuple[str, str, int]] = []
        self._tables: dict[str, TableUpdates] = {}
        """Store → its updates"""
        self._joins: set[str] = set()
        """The planned joins of streams with tables."""
        self._joined: set[str] = set()
        """The stores that these joins read."""
        self._own_stores: set[str] = set()
        """The stores of the source whose nodes are planned."""
        self._totals: list[KeyTotals] = []
        self._stream_joins: dict[str, StreamJoin] = {}
        """Node that merges the results of both sides → join of two streams"""
        self._source_name = ""
        """The source whose nodes are planned."""
        self._are_results = False
        """Whether the nodes that are planned get results of a join of two streams."""
        self._topics: set[str] = set()

    def plan(self) -> ColumnPlan:
        """Raise `NotInColumnsError` if there is no plan."""
        sources = [node for node in self._nodes if isinstance(node, SourceNode)]
        tables = {source.name: tuple(self._tables_of(source)) for source in sources}
        found: dict[str, PlannedSource] = {}
        for source in sources:
            try:
                found[source.name] = self._plan_source(source, tables[source.name])
            except NotInColumnsError:
                if len(self._tables) != 1:
                    raise
        if not found:
            raise NotInColumnsError
        if self._joined:  # their reads are not noted: no entry may leave a cache while it is flushed
            self._check_only_tables_are_cached()
            self._check_only_planned_joins_read_tables()
        if self._totals and (self._tables or len(self._totals) > 1):
            raise NotInColumnsError  # not compared with single records
        joins = self._stream_joins.values()
        if joins and (self._tables or self._totals or any(len(join.sources) == 1 for join in joins)):
            # One source: a record would be joined with itself.
            raise NotInColumnsError
        return ColumnPlan(
            self._task,
            found,
            self._totals,
            list(joins),
            outputs=self._outputs,
            dropped=self._dropped,
            needs_order=bool(self._joined or joins),
        )

    def _tables_of(self, source: SourceNode) -> Iterable[TableUpdates]:
        for node in self._children[source.name]:
            if isinstance(node, ProcessorNode) and isinstance(node.behavior, TableSource):
                store = node.behavior.store
                typed = None if store is None else self._task.stores.typed_store(store)
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

    def _plan_source(self, source: SourceNode, tables: tuple[TableUpdates, ...]) -> PlannedSource:
        reads = source.reads
        if reads is not None and (
            reads.timestamp is not None or reads.foreign_key is not None or reads.carries_changes
        ):
            raise NotInColumnsError
        self._source_name = source.name
        own = {table.node for table in tables}
        self._own_stores = {store for store, table in self._tables.items() if table.node in own}
        children = [self._plan_operator(node) for node in self._children[source.name] if not _is_table(node)]
        serdes = serdes_of(reads, self._task.program)
        for table in tables:
            if table.typed.key_serde is not serdes[0]:
                raise NotInColumnsError
        return PlannedSource(serdes, _forward_to(children) if children else None, tables)

    def _plan_operator(self, node: Node) -> ColumnProcess:
        if isinstance(node, SourceNode) or len(node.parents) != 1:
            raise NotInColumnsError  # the rows of several parents would be in another order
        if isinstance(node, SinkNode):
            return self._plan_sink(node)
        behavior = node.behavior
        build = STATELESS.get(type(behavior))
        if build is not None:
            return build(behavior, self._forward(node), self._function_of)
        if self._are_results:
            raise NotInColumnsError  # a result has two records
        match behavior:
            case JoinWindowed(store=store):
                return self._stream_join(node, store)
            case StreamTableJoin(table=StoreView() as view, buffer=None):
                return self._plan_join(node, behavior, view.store)
            case StreamAggregate(window=None):
                return self._plan_aggregate(node, behavior)
        raise NotInColumnsError

    def _forward(self, node: ProcessorNode) -> ColumnProcess:
        return _forward_to([self._plan_operator(child) for child in self._children[node.name]])

    def _plan_sink(self, node: SinkNode) -> ColumnProcess:
        program = self._task.program
        topic = program.topic(node.name)
        if topic is None or topic in self._topics or program.partition(node.name) is not None:
            raise NotInColumnsError
        self._topics.add(topic)
        return column_sink(topic, serdes_of(node.writes, program), self._outputs.append)

    def _plan_join(self, node: ProcessorNode, behavior: StreamTableJoin, store: str) -> ColumnProcess:
        table = self._tables.get(store)
        if table is None or store in self._joined or store in self._own_stores:
            raise NotInColumnsError
        self._joined.add(store)
        self._joins.add(node.name)
        joined = self._function_of(behavior.value, "left", "right", "key")

        def drop(number: int) -> None:
            self._dropped.append((node.name, NO_KEY_OR_VALUE, number))

        return column_join(behavior, table, joined, self._forward(node), drop)

    def _stream_join(self, windowed: ProcessorNode, store: str) -> ColumnProcess:
        """Plan one side of an inner join of two streams, whose records are put into `store`."""
        match self._children[windowed.name]:
            case [ProcessorNode(name=name, behavior=StreamStreamJoin(kind="inner") as behavior)]:
                pass
            case _:
                raise NotInColumnsError
        match self._children[name]:
            case [ProcessorNode(behavior=PassThrough()) as merge] if self._merges_sides(merge, behavior):
                pass
            case _:
                raise NotInColumnsError
        typed = self._task.stores.typed_store(store)
        if behavior.own_store != store or type(typed) is not WindowBytes or not typed.has_only_duplicates:
            raise NotInColumnsError
        join = self._stream_joins.get(merge.name)
        if join is None:
            self._are_results = True
            forward = self._forward(merge)
            self._are_results = False
            join = self._stream_joins[merge.name] = StreamJoin(forward, self._drop_incomplete)
        return join.add_side(self._plan_side(name, behavior, typed))

    def _merges_sides(self, merge: ProcessorNode, behavior: StreamStreamJoin) -> bool:
        """Return whether a node gets the results of both sides of a join, and nothing else."""
        parents = [node for node in self._nodes if node.name in merge.parents]
        stores = {
            node.behavior.own_store
            for node in parents
            if isinstance(node, ProcessorNode) and isinstance(node.behavior, StreamStreamJoin)
        }
        return len(parents) == len(stores) and stores == {behavior.own_store, behavior.other_store}

    def _plan_side(self, node: str, behavior: StreamStreamJoin, store: WindowBytes) -> JoinSide:
        window, joined = behavior.window, self._function_of(behavior.value, "left", "right", "key")
        if behavior.is_left:
            return JoinSide(node, self._source_name, store, window.before_ms, window.after_ms, joined)

        def join(own: Value, other: Value, key: Value) -> Value:
            return joined(other, own, key)

        return JoinSide(node, self._source_name, store, window.after_ms, window.before_ms, join)

    def _drop_incomplete(self, node: str, number: int) -> None:
        self._dropped.append((node, NO_KEY_OR_VALUE, number))

    def _plan_aggregate(self, node: ProcessorNode, behavior: StreamAggregate) -> ColumnProcess:
        cached = self._task.column_totals.get(node.name)
        if not isinstance(cached, Totals):
            raise NotInColumnsError
        self._check_functions(behavior.aggregation)
        totals = KeyTotals(node.name, cached)
        self._totals.append(totals)
        return totals.add

    def _check_functions(self, aggregation: Aggregation) -> None:
        if aggregation.kind is not AggregationKind.COUNT:
            self._function_of(aggregation.add, "key", "value", "total")
        if aggregation.kind is AggregationKind.AGGREGATE:
            self._function_of(aggregation.init)

    def _check_only_tables_are_cached(self) -> None:
        for store in self._task.program.stores:
            cached = getattr(self._task.stores.typed_store(store.name), "below", None)
            if isinstance(cached, Cached) and store.name not in self._tables:
                raise NotInColumnsError

    def _check_only_planned_joins_read_tables(self) -> None:
        """Rows that other joins read when a cache is flushed become entries of another one."""
        for node in self._nodes:
            if (
                isinstance(node, ProcessorNode)
                and isinstance(node.behavior, StreamTableJoin | TableTableJoin)
                and node.name not in self._joins
            ):
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
