"""What a node of the topology does when a record arrives: a frozen class for each processor of Kafka Streams.

The compiler hangs them on the nodes that it writes; the runtime has one operator for each. Expressions are
Spark SQL text (None = the document does not say; such a topology plans but does not run). Store names are
undecorated. Durations are milliseconds. Names follow the processors of
`org.apache.kafka.streams.kstream.internals`.

`sends_old` = changes go on with their old value, as `enableSendingOldValues` decides it; `versioned` = an
upstream table is versioned, so that changes which are not the latest are passed over or on (KIP-914).
"""

from enum import Enum
from typing import Literal

import attrs

from infra.model.windows import JoinWindow, Window

JoinKind = Literal["inner", "left", "outer"]


# how a table's current value is looked up (KTableValueGetterSupplier)


@attrs.frozen
class StoreView:
    """The values lie in a store."""

    store: str


@attrs.frozen
class FilteredView:
    """`KTableFilter`'s getter over an unmaterialised parent."""

    parent: "TableView"
    where: str | None
    negate: bool = False


@attrs.frozen
class MappedView:
    """`KTableMapValues`' getter over an unmaterialised parent."""

    parent: "TableView"
    value: str | None


@attrs.frozen
class JoinedView:
    """The getter of a table-table join without a store."""

    kind: JoinKind
    left: "TableView"
    right: "TableView"
    value: str | None


@attrs.frozen
class TransformedView:
    """`KTableTransformValues`' getter: the transformer of `node` is called for each look-up."""

    parent: "TableView"
    node: str


@attrs.frozen
class SuppressedView:
    """`KTableSuppressProcessorSupplier`'s getter: what `store` buffers hides the parent's value."""

    parent: "TableView"
    store: str


TableView = StoreView | FilteredView | MappedView | JoinedView | TransformedView | SuppressedView


# streams


@attrs.frozen
class PassThrough:
    """Forwards what comes: merges, branches' own nodes."""


@attrs.frozen
class Filter:
    where: str | None
    negate: bool = False


@attrs.frozen
class MapRecord:
    """`map`, and `selectKey` (`value` None and `keeps_value`)."""

    key: str | None
    value: str | None = None
    keeps_value: bool = False


@attrs.frozen
class MapValues:
    value: str | None


@attrs.frozen
class FlatMap:
    """`each` yields an array of structs with `key` and `value`."""

    each: str | None


@attrs.frozen
class FlatMapValues:
    """`each` yields an array of values."""

    each: str | None


@attrs.frozen
class Peek:
    """`peek` (forwards), `foreach` and `print` (do not). The expression is evaluated and logged."""

    kind: Literal["peek", "foreach", "print"]
    each: str | None = None


@attrs.frozen
class Branch:
    """`KStreamBranch`: a record goes to the child of the first predicate that holds.

    `children[i]` is the node for `predicates[i]`; `default` the node of `defaultBranch`, if any.
    """

    predicates: tuple[str | None, ...]
    children: tuple[str, ...]
    default: str | None = None


@attrs.frozen
class NonNullKeyFilter:
    """The filter before a repartition sink: null keys are dropped."""


@attrs.frozen
class RunProcessor:
    """`process`, `processValues`, `addProcessor`: a class of the user's, `module:Class`."""

    processor_class: str | None
    stores: tuple[str, ...] = ()
    values_only: bool = False


# aggregations of streams


class AggregationKind(Enum):
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
class StreamAggregate:
    """`KStreamAggregate`, `KStreamReduce` (`window` None), and their windowed, sliding and session kin."""

    store: str
    aggregation: Aggregation
    window: Window | None = None
    emit_on_close: bool = False
    sends_old: bool = False


# tables


@attrs.frozen
class TableSource:
    """`KTableSource`: `table`, `toTable`; `store` None = not materialised (forwards without an old value)."""

    store: str | None
    sends_old: bool = False


@attrs.frozen
class GlobalTableSource:
    """`KTableSource` of a global table, or the restoring of `addGlobalStore` (then `processor_class`)."""

    store: str
    processor_class: str | None = None


@attrs.frozen
class TableFilter:
    where: str | None
    negate: bool
    parent: TableView
    store: str | None = None
    sends_old: bool = False
    versioned: bool = False


@attrs.frozen
class TableMapValues:
    value: str | None
    parent: TableView
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableTransformValues:
    processor_class: str | None
    parent: TableView
    stores: tuple[str, ...] = ()
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableToStream:
    """Forwards the new value of each change."""


@attrs.frozen
class TableRepartitionMap:
    """`KTable#groupBy`: old and new value go on under the keys that the selector gives them."""

    key: str | None
    value: str | None
    parent: TableView
    versioned: bool = False


@attrs.frozen
class TableAggregate:
    """`KTableAggregate`, `KTableReduce`: removes the old value, adds the new one."""

    store: str
    aggregation: Aggregation
    sends_old: bool = False


@attrs.frozen
class TableSuppress:
    store: str
    parent: TableView
    until_window_closes: bool
    wait_ms: int
    """The time limit, or the grace after a window's end."""
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    """Otherwise the oldest is emitted early. A limit is a limit of either."""


# joins


@attrs.frozen
class JoinWindowed:
    """`KStreamJoinWindow`: puts the record into its side's window store and forwards it."""

    store: str


@attrs.frozen
class StreamStreamJoin:
    """`KStreamKStreamJoinLeftSide`/`RightSide`: looks for partners in the other side's store.

    `window` is seen from the left side. `shared` is the list store of records that wait for a partner.
    """

    kind: JoinKind
    is_left: bool
    window: JoinWindow
    value: str | None
    own_store: str
    other_store: str
    shared: str | None = None


@attrs.frozen
class StreamSelfJoin:
    """`KStreamKStreamSelfJoin`."""

    window: JoinWindow
    value: str | None
    store: str


@attrs.frozen
class StreamTableJoin:
    """`KStreamKTableJoin`; `grace_ms` set = records wait in the buffer store `buffer` (versioned tables)."""

    kind: JoinKind
    value: str | None
    table: TableView
    grace_ms: int | None = None
    buffer: str | None = None


@attrs.frozen
class StreamGlobalJoin:
    kind: JoinKind
    key: str | None
    value: str | None
    store: str


@attrs.frozen
class TableTableJoin:
    """One side of a table-table join: `own` is the side it hears from, `other` the one it looks into."""

    kind: JoinKind
    is_left: bool
    value: str | None
    own: TableView
    other: TableView
    sends_old: bool = False
    versioned: bool = False


@attrs.frozen
class TableJoinMerge:
    """`KTableKTableJoinMerger`."""

    store: str | None = None
    sends_old: bool = False


# foreign-key joins (KIP-213)


@attrs.frozen
class ForeignKeySend:
    """`SubscriptionSendProcessorSupplier`: tells the foreign side which keys of the left table want what.

    The message holds a hash of the left value as `left` writes it; equal foreign keys are told by the bytes
    of `foreign`.
    """

    kind: JoinKind
    foreign_key: str | None
    left: "RecordFormat"
    foreign: "RecordFormat"
    versioned: bool = False


@attrs.frozen
class ForeignKeyReceive:
    """`SubscriptionReceiveProcessorSupplier`: keeps the subscription."""

    store: str


@attrs.frozen
class ForeignKeyAnswer:
    """`SubscriptionJoinProcessorSupplier`: answers a new subscription with the right table's value."""

    table: TableView


@attrs.frozen
class ForeignKeyNotify:
    """`ForeignTableJoinProcessorSupplier`: a change of the right table answers all its subscriptions."""

    store: str
    versioned: bool = False


@attrs.frozen
class ForeignKeyResolve:
    """`ResponseJoinProcessorSupplier`: joins the answer if the left value is still the one that asked."""

    kind: JoinKind
    value: str | None
    table: TableView
    left: "RecordFormat"


@attrs.frozen
class ForeignKeyResult:
    """The result's `KTableSource`."""

    store: str | None
    sends_old: bool = False


Behaviour = (
    PassThrough
    | Filter
    | MapRecord
    | MapValues
    | FlatMap
    | FlatMapValues
    | Peek
    | Branch
    | NonNullKeyFilter
    | RunProcessor
    | StreamAggregate
    | TableSource
    | GlobalTableSource
    | TableFilter
    | TableMapValues
    | TableTransformValues
    | TableToStream
    | TableRepartitionMap
    | TableAggregate
    | TableSuppress
    | JoinWindowed
    | StreamStreamJoin
    | StreamSelfJoin
    | StreamTableJoin
    | StreamGlobalJoin
    | TableTableJoin
    | TableJoinMerge
    | ForeignKeySend
    | ForeignKeyReceive
    | ForeignKeyAnswer
    | ForeignKeyNotify
    | ForeignKeyResolve
    | ForeignKeyResult
)


# formats: what bytes mean where records enter, leave or are kept


DEFAULT_FORMAT = "default"


@attrs.frozen
class Format:
    """A serde by name (`DEFAULT_FORMAT` = the application's); `window` set = a windowed key over it.

    `size_ms` None = the size is not known (time) or lies in the key (session).
    """

    name: str
    window: Literal["time", "session"] | None = None
    size_ms: int | None = None


@attrs.frozen
class RecordFormat:
    """None = the application's default (`default.key.serde`, `default.value.serde`; without them: string)."""

    key: Format | None = None
    value: Format | None = None


UNTOLD = RecordFormat()


ForeignKeyMessage = Literal["subscription", "response"]
"""Of a subscription the format's key is the foreign key's and its value the left key's (both default to the
keys' default); of a response the key is the left key's and the value the right value's."""


@attrs.frozen
class Reads:
    """What a source node needs to read. `timestamp` is an expression for the record's time (milliseconds)."""

    format: RecordFormat
    offset_reset: str | None = None
    timestamp: str | None = None
    carries_changes: bool = False
    """A repartition topic of `KTable#groupBy`: values carry old and new (`ChangedSerializer`)."""
    foreign_key: ForeignKeyMessage | None = None


@attrs.frozen
class Writes:
    """What a sink node needs to write."""

    format: RecordFormat
    partitioner: str | None = None
    extractor: str | None = None
    """An expression for the topic's name."""
    carries_changes: bool = False
    foreign_key: ForeignKeyMessage | None = None


@attrs.frozen
class Keeps:
    """What a store needs to be opened.

    Keys of window and session stores are plain here, the store adds the window. A `list` keeps the values of
    both sides of a stream-stream join: `format` is the left one's, `right` the right one's. A `subscription`
    is kept by foreign key (`format.key`) and left key (`format.value`).
    """

    kind: Literal[
        "keyValue", "timestampedKeyValue", "versionedKeyValue", "window", "timestampedWindow", "session",
        "list", "suppress", "subscription", "joinBuffer",
    ]  # fmt: skip
    format: RecordFormat
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    caching: bool | None = None
    in_memory: bool = False
    right: RecordFormat | None = None
