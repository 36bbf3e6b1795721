"""The handles that calls return, the calls that each type of handle has, and how the DSL spells them.

Handles are compared by identity, as in Kafka Streams: for example, the repartition node of a join belongs to
the `KStream` object, not to the topic.
"""

import attrs

from headwater.compiler.dsl.declarations import OldValues
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.stores import LazyStore
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.formats import DEFAULT_RECORD_FORMAT, RecordFormat, StoreView, TableView
from headwater.model.operators import Operator
from headwater.model.windows import Window


@attrs.frozen(eq=False)
class Stream:
    """`KStream`.

    `sources` are the source nodes that a co-partition group of the stream names (`subTopologySourceNodes`).
    `repartition_required`: the key may have changed, so a join or an aggregation repartitions first.
    """

    name: str
    sources: frozenset[str]
    node: GraphNode
    repartition_required: bool = False
    record: RecordFormat = DEFAULT_RECORD_FORMAT


@attrs.frozen(eq=False)
class GroupedStream:
    """`KGroupedStream`; `group` is the name given by `Grouped`."""

    name: str
    sources: frozenset[str]
    node: GraphNode
    repartition_required: bool
    group: str | None = None
    record: RecordFormat = DEFAULT_RECORD_FORMAT


@attrs.frozen(eq=False)
class WindowedStream:
    """`TimeWindowedKStream` or `SessionWindowedKStream` over `grouped`."""

    grouped: GroupedStream
    window: Window
    emit_on_close: bool = False


@attrs.frozen(eq=False)
class CogroupedStream:
    """`CogroupedKStream`; further `cogroup` calls add inputs to the same object."""

    first: GroupedStream


@attrs.frozen(eq=False)
class WindowedCogroupedStream:
    """`TimeWindowedCogroupedKStream` or `SessionWindowedCogroupedKStream`."""

    cogrouped: CogroupedStream
    window: Window


@attrs.frozen(eq=False)
class View:
    """How a table's values are read (`KTableValueGetterSupplier`): names of stores, and the lazy store.

    A table without a store of its own reads the stores of its upstream table with `values`.
    """

    stores: tuple[str, ...]
    values: TableView
    lazy_store: LazyStore | None = None

    @classmethod
    def from_store(cls, store: str, lazy_store: LazyStore | None = None) -> "View":
        return cls((store,), StoreView(store), lazy_store)

    def through_values(self, values: TableView) -> "View":
        """Return the view of a derived table without a store."""
        return View(self.stores, values, self.lazy_store)

    def materialize(self) -> tuple[str, ...]:
        """Make the lazy store exist and return the names of all stores."""
        if self.lazy_store is not None:
            self.lazy_store.needed = True
        return self.stores


@attrs.frozen(eq=False)
class Table:
    """`KTable`; `name` is the name of its processor."""

    name: str
    sources: frozenset[str]
    node: GraphNode
    view: View
    old_values: OldValues
    record: RecordFormat = DEFAULT_RECORD_FORMAT


@attrs.frozen(eq=False)
class GroupedTable:
    """`KGroupedTable`."""

    name: str
    node: GraphNode
    group: str | None = None
    record: RecordFormat = DEFAULT_RECORD_FORMAT


@attrs.frozen(eq=False)
class GlobalTable:
    """`GlobalKTable`: only the right side of a stream's join."""

    store: str
    record: RecordFormat = DEFAULT_RECORD_FORMAT


@attrs.frozen(eq=False)
class Branches:
    """The result of `split`: only its branches have handles."""


@attrs.frozen(eq=False)
class Nothing:
    """The result of a call that returns nothing (`to`, `foreach`, `print`, `addSink`…)."""

    call: str


@attrs.frozen(eq=False)
class InvalidHandle:
    """The result of an invalid call; calls on it are ignored and report no further problem."""


Handle = (
    Stream
    | GroupedStream
    | WindowedStream
    | CogroupedStream
    | WindowedCogroupedStream
    | Table
    | GroupedTable
    | GlobalTable
    | Branches
    | Nothing
    | InvalidHandle
)

KIND: dict[type, str] = {
    Stream: "stream",
    GroupedStream: "grouped stream",
    WindowedStream: "windowed stream",
    CogroupedStream: "cogrouped stream",
    WindowedCogroupedStream: "windowed cogrouped stream",
    Table: "table",
    GroupedTable: "grouped table",
    GlobalTable: "global table",
    Branches: "split",
}

CALLS_ON: dict[type, tuple[str, ...]] = {
    Stream: (
        "filter", "filterNot", "selectKey", "map", "mapValues", "flatMap", "flatMapValues", "peek", "foreach",
        "print", "process", "processValues", "merge", "split", "repartition", "to", "toTable",
        "groupBy", "groupByKey", "join", "leftJoin", "outerJoin",
    ),
    GroupedStream: ("count", "reduce", "aggregate", "windowedBy", "cogroup"),
    WindowedStream: ("count", "reduce", "aggregate"),
    CogroupedStream: ("cogroup", "aggregate", "windowedBy"),
    WindowedCogroupedStream: ("aggregate",),
    Table: (
        "filter", "filterNot", "mapValues", "transformValues", "toStream", "suppress", "groupBy",
        "join", "leftJoin", "outerJoin",
    ),
    GroupedTable: ("count", "reduce", "aggregate"),
    GlobalTable: (),
    Branches: (),
}  # fmt: skip
_CALL_NAMES: dict[type, str] = {
    op.ReadStream: "stream",
    op.ReadTable: "table",
    op.GlobalTable: "globalTable",
    processor_api.AddStateStore: "addStateStore",
    processor_api.AddGlobalStore: "addGlobalStore",
    op.Process: "process",
    op.ProcessValues: "processValues",
    op.Merge: "merge",
    op.Split: "split",
    op.To: "to",
    op.Repartition: "repartition",
    op.GroupByKey: "groupByKey",
    op.GroupBy: "groupBy",
    op.WindowedBy: "windowedBy",
    op.Cogroup: "cogroup",
    op.Count: "count",
    op.Reduce: "reduce",
    op.Aggregate: "aggregate",
    op.Suppress: "suppress",
    op.ToTable: "toTable",
    op.ToStream: "toStream",
    op.TransformValues: "transformValues",
    processor_api.AddSource: "addSource",
    processor_api.AddProcessor: "addProcessor",
    processor_api.AddSink: "addSink",
    processor_api.AddReadOnlyStateStore: "addReadOnlyStateStore",
    processor_api.ConnectStores: "connectProcessorAndStateStores",
}
UNCHECKED_NAMES = (op.Repartition, op.Suppress, op.GroupByKey)
"""Calls whose names Kafka Streams does not validate."""


def call_name(operator: Operator) -> str:
    """Return the call as the DSL spells it."""
    if isinstance(operator, op.Transform):
        return operator.kind.value
    if isinstance(operator, op.Join):
        return operator.type.value
    return _CALL_NAMES[type(operator)]
