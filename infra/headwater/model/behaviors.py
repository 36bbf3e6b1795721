"""What a node of the topology does when a record arrives: a frozen class for each processor of Kafka Streams.

The compiler sets them on the nodes that it writes; the runtime has one operator for each. Expressions are
Spark SQL texts; None = not in the document, which can then be planned but not run. Store names have no
application id prefix. Durations are milliseconds. Class names follow the processors in
`org.apache.kafka.streams.kstream.internals`.

`sends_old`: changes contain the old value (`enableSendingOldValues`). `versioned`: an upstream table is
versioned, so out-of-order changes are handled as in KIP-914.
"""

from enum import Enum
from typing import Literal

import attrs

from headwater.model.formats import Format, JoinKind, RecordFormat, TableView
from headwater.model.windows import JoinWindow, Window


@attrs.frozen
class Behavior:
    """What a node does with a record."""


@attrs.frozen
class PassThrough(Behavior):
    """Forwards each record: `merge`, and the node of each branch."""


@attrs.frozen
class Filter(Behavior):
    """`filter`, and `filterNot` (`negate`)."""

    where: str | None
    negate: bool = False


@attrs.frozen
class MapRecord(Behavior):
    """`map`, and `selectKey` (`value` None and `keeps_value`)."""

    key: str | None
    value: str | None = None
    keeps_value: bool = False


@attrs.frozen
class MapValues(Behavior):
    """`mapValues`: `value` is the new value; the key stays."""

    value: str | None


@attrs.frozen
class FlatMap(Behavior):
    """`each` yields an array of structs with `key` and `value`."""

    each: str | None


@attrs.frozen
class FlatMapValues(Behavior):
    """`each` yields an array of values."""

    each: str | None


@attrs.frozen
class Peek(Behavior):
    """`peek` (forwards), `foreach` and `print` (do not). The expression is evaluated and logged."""

    kind: Literal["peek", "foreach", "print"]
    each: str | None = None


@attrs.frozen
class Branch(Behavior):
    """`KStreamBranch`: a record goes to the child of the first predicate that holds.

    `children[i]` is the node for `predicates[i]`; `default` the node of `defaultBranch`, if any.
    """

    predicates: tuple[str | None, ...]
    children: tuple[str, ...]
    default: str | None = None


@attrs.frozen
class NonNullKeyFilter(Behavior):
    """The filter before a repartition sink: drops records with a null key."""


@attrs.frozen
class RunProcessor(Behavior):
    """`process`, `processValues`, `addProcessor` with a class of the user, `module:Class`."""

    processor_class: str | None
    stores: tuple[str, ...] = ()
    values_only: bool = False


@attrs.frozen
class TableSource(Behavior):
    """`KTableSource`: `table`, `toTable`; without a `store` it forwards changes without old values."""

    store: str | None
    sends_old: bool = False


@attrs.frozen
class GlobalTableSource(Behavior):
    """`KTableSource` of a global table, or with `processor_class` the processor of `addGlobalStore`."""

    store: str
    processor_class: str | None = None


@attrs.frozen
class TableFilter(Behavior):
    """`KTableFilter`: a value that does not pass counts as null."""

    where: str | None
    negate: bool
    parent: TableView
    store: str | None = None
    sends_old: bool = False
    versioned: bool = False


@attrs.frozen
class TableMapValues(Behavior):
    """`KTableMapValues`: computes `value` from the new value, and from the old one if that is sent."""

    value: str | None
    parent: TableView
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableTransformValues(Behavior):
    """`KTableTransformValues` with a class of the user, `module:Class`, that may access `stores`."""

    processor_class: str | None
    parent: TableView
    stores: tuple[str, ...] = ()
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableToStream(Behavior):
    """Forwards the new value of each change."""


@attrs.frozen
class TableRepartitionMap(Behavior):
    """`KTable#groupBy`: forwards old and new value with the keys that the selector returns.

    `key_format` is the format of these keys.
    """

    key: str | None
    value: str | None
    parent: TableView
    versioned: bool = False
    key_format: Format | None = None
    sends_both_values: bool = True
    """Whether an update that keeps its new key is one record (KIP-904); not with `upgrade.from` up to 3.4."""


@attrs.frozen
class TableSuppress(Behavior):
    """`KTableSuppressProcessorSupplier`: buffers changes in `store` for a time or until the window closes."""

    store: str
    parent: TableView
    until_window_closes: bool
    wait_ms: int
    """Milliseconds: the time limit, or the grace after the window's end."""
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    """Shut down when a limit is reached; otherwise emit the oldest change early."""


class AggregationKind(Enum):
    """The method of Kafka Streams: `count()`, `reduce()` or `aggregate()`."""

    COUNT = "count"
    REDUCE = "reduce"
    AGGREGATE = "aggregate"


@attrs.frozen
class Aggregation:
    """The functions: `add` and `remove` over `total`, `value`, `key`; `merge` over `left`, `right`, `key`."""

    kind: AggregationKind
    init: str | None = None
    add: str | None = None
    remove: str | None = None
    merge: str | None = None


@attrs.frozen
class StreamAggregate(Behavior):
    """`KStreamAggregate`, `KStreamReduce`; with `window` also the window, sliding and session variants."""

    store: str
    aggregation: Aggregation
    window: Window | None = None
    emit_on_close: bool = False
    sends_old: bool = False


@attrs.frozen
class TableAggregate(Behavior):
    """`KTableAggregate`, `KTableReduce`: subtracts the old value and adds the new one."""

    store: str
    aggregation: Aggregation
    sends_old: bool = False


@attrs.frozen
class JoinWindowed(Behavior):
    """`KStreamJoinWindow`: puts the record into the window store of its side and forwards it."""

    store: str


@attrs.frozen
class StreamStreamJoin(Behavior):
    """`KStreamKStreamJoinLeftSide`, `KStreamKStreamJoinRightSide`: joins with the other side's window store.

    `window` is the window of the left side. `shared` is the store of records without a join result so far, of
    left and outer joins whose window is not eager.
    """

    kind: JoinKind
    is_left: bool
    window: JoinWindow
    value: str | None
    own_store: str
    other_store: str
    shared: str | None = None
    closes_by_own_side: bool = True
    """Whether a record waits until the window of its own side closes (KAFKA-15417).

    Before, it waited until the window of the receiving side closes.
    """


@attrs.frozen
class StreamSelfJoin(Behavior):
    """`KStreamKStreamSelfJoin`."""

    window: JoinWindow
    value: str | None
    store: str


@attrs.frozen
class StreamTableJoin(Behavior):
    """`KStreamKTableJoin`; with `grace_ms`, records are buffered in the store `buffer` (versioned tables)."""

    kind: JoinKind
    value: str | None
    table: TableView
    grace_ms: int | None = None
    buffer: str | None = None


@attrs.frozen
class StreamGlobalJoin(Behavior):
    """`KStreamGlobalKTableJoin`; `key` is the expression for the global table's key."""

    kind: JoinKind
    key: str | None
    value: str | None
    store: str
    forwards_null_table_keys: bool = True
    """Whether KAFKA-19208 is fixed: a left join keeps records whose key for the global table is null."""


@attrs.frozen
class TableTableJoin(Behavior):
    """One side of a table-table join: it receives changes of `own` and reads values of `other`."""

    kind: JoinKind
    is_left: bool
    value: str | None
    own: TableView
    other: TableView
    sends_old: bool = False
    versioned: bool = False


@attrs.frozen
class TableJoinMerge(Behavior):
    """`KTableKTableJoinMerger`."""

    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class ForeignKeySend(Behavior):
    """`SubscriptionSendProcessorSupplier`: sends subscriptions of the left table's keys to the right table.

    The message contains a hash of the left value, serialized with `left`. Foreign keys are compared by their
    bytes, serialized with `foreign`.
    """

    kind: JoinKind
    foreign_key: str | None
    left: RecordFormat
    foreign: RecordFormat
    versioned: bool = False
    has_null_fixes: bool = True
    """Whether KAFKA-16394 and KAFKA-16407 are fixed: fewer nulls in results, and no lost changes."""


@attrs.frozen
class ForeignKeyReceive(Behavior):
    """`SubscriptionReceiveProcessorSupplier`: stores the subscription."""

    store: str


@attrs.frozen
class ForeignKeyAnswer(Behavior):
    """`SubscriptionJoinProcessorSupplier`: answers a new subscription with the right table's value."""

    table: TableView


@attrs.frozen
class ForeignKeyNotify(Behavior):
    """`ForeignTableJoinProcessorSupplier`: sends a change of the right table to all its subscriptions."""

    store: str
    versioned: bool = False


@attrs.frozen
class ForeignKeyResolve(Behavior):
    """`ResponseJoinProcessorSupplier`: joins the response if the left value is still the subscribed one."""

    kind: JoinKind
    value: str | None
    table: TableView
    left: RecordFormat


@attrs.frozen
class ForeignKeyResult(Behavior):
    """The result's `KTableSource`."""

    store: str | None
    sends_old: bool = False
