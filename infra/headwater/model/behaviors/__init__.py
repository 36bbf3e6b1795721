"""What a node of the topology does when a record arrives: a frozen class for each processor of Kafka Streams.

The compiler sets them on the nodes that it writes; the runtime has one operator for each. Expressions are
Spark SQL texts; None = not in the document, which can then be planned but not run. Store names have no
application id prefix. Durations are milliseconds. Class names follow the processors in
`org.apache.kafka.streams.kstream.internals`.

`sends_old`: changes contain the old value (`enableSendingOldValues`). `versioned`: an upstream table is
versioned, so out-of-order changes are handled as in KIP-914.
"""

from headwater.model.behaviors.formats import (
    DEFAULT_FORMAT,
    DEFAULT_RECORD_FORMAT,
    FilteredView,
    ForeignKeyMessage,
    Format,
    JoinedView,
    JoinKind,
    MappedView,
    RecordFormat,
    SinkSettings,
    SourceSettings,
    StoreSettings,
    StoreView,
    SuppressedView,
    TableView,
    TransformedView,
)
from headwater.model.behaviors.operators import (
    Aggregation,
    AggregationKind,
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    ForeignKeyAnswer,
    ForeignKeyNotify,
    ForeignKeyReceive,
    ForeignKeyResolve,
    ForeignKeyResult,
    ForeignKeySend,
    GlobalTableSource,
    JoinWindowed,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
    Peek,
    RunProcessor,
    StreamAggregate,
    StreamGlobalJoin,
    StreamSelfJoin,
    StreamStreamJoin,
    StreamTableJoin,
    TableAggregate,
    TableFilter,
    TableJoinMerge,
    TableMapValues,
    TableRepartitionMap,
    TableSource,
    TableSuppress,
    TableTableJoin,
    TableToStream,
    TableTransformValues,
)

Behavior = (
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

__all__ = [
    "DEFAULT_FORMAT",
    "DEFAULT_RECORD_FORMAT",
    "Aggregation",
    "AggregationKind",
    "Behavior",
    "Branch",
    "Filter",
    "FilteredView",
    "FlatMap",
    "FlatMapValues",
    "ForeignKeyAnswer",
    "ForeignKeyMessage",
    "ForeignKeyNotify",
    "ForeignKeyReceive",
    "ForeignKeyResolve",
    "ForeignKeyResult",
    "ForeignKeySend",
    "Format",
    "GlobalTableSource",
    "JoinKind",
    "JoinWindowed",
    "JoinedView",
    "MapRecord",
    "MapValues",
    "MappedView",
    "NonNullKeyFilter",
    "PassThrough",
    "Peek",
    "RecordFormat",
    "RunProcessor",
    "SinkSettings",
    "SourceSettings",
    "StoreSettings",
    "StoreView",
    "StreamAggregate",
    "StreamGlobalJoin",
    "StreamSelfJoin",
    "StreamStreamJoin",
    "StreamTableJoin",
    "SuppressedView",
    "TableAggregate",
    "TableFilter",
    "TableJoinMerge",
    "TableMapValues",
    "TableRepartitionMap",
    "TableSource",
    "TableSuppress",
    "TableTableJoin",
    "TableToStream",
    "TableTransformValues",
    "TableView",
    "TransformedView",
]
