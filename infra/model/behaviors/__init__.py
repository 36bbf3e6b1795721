"""What a node of the topology does when a record arrives: a frozen class for each processor of Kafka Streams.

The compiler hangs them on the nodes that it writes; the runtime has one operator for each. Expressions are
Spark SQL text (None = the document does not say; such a topology plans but does not run). Store names are
undecorated. Durations are milliseconds. Names follow the processors of
`org.apache.kafka.streams.kstream.internals`.

`sends_old` = changes go on with their old value, as `enableSendingOldValues` decides it; `versioned` = an
upstream table is versioned, so that changes which are not the latest are passed over or on (KIP-914).
"""

from infra.model.behaviors.aggregations import Aggregation, AggregationKind, StreamAggregate, TableAggregate
from infra.model.behaviors.foreign_keys import (
    ForeignKeyAnswer,
    ForeignKeyNotify,
    ForeignKeyReceive,
    ForeignKeyResolve,
    ForeignKeyResult,
    ForeignKeySend,
)
from infra.model.behaviors.formats import (
    DEFAULT_FORMAT,
    DEFAULT_RECORD_FORMAT,
    ForeignKeyMessage,
    Format,
    RecordFormat,
    SinkSettings,
    SourceSettings,
    StoreSettings,
)
from infra.model.behaviors.joins import (
    JoinWindowed,
    StreamGlobalJoin,
    StreamSelfJoin,
    StreamStreamJoin,
    StreamTableJoin,
    TableJoinMerge,
    TableTableJoin,
)
from infra.model.behaviors.streams import (
    Branch,
    Filter,
    FlatMap,
    FlatMapValues,
    MapRecord,
    MapValues,
    NonNullKeyFilter,
    PassThrough,
    Peek,
    RunProcessor,
)
from infra.model.behaviors.tables import (
    GlobalTableSource,
    TableFilter,
    TableMapValues,
    TableRepartitionMap,
    TableSource,
    TableSuppress,
    TableToStream,
    TableTransformValues,
)
from infra.model.behaviors.views import (
    FilteredView,
    JoinedView,
    JoinKind,
    MappedView,
    StoreView,
    SuppressedView,
    TableView,
    TransformedView,
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
