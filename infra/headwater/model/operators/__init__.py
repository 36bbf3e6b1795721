"""One frozen class for each call of the DSL and of the Processor API; the fields are the call's options.

`name` is what the user passes as `Named`, `Grouped`, `Joined`, `Repartitioned`, `Consumed.as` and so on;
None = not given. Expressions and Python classes are texts that only the runtime uses.
"""

from headwater.model.operators.sources import (
    AddGlobalStore,
    AddProcessor,
    AddReadOnlyStateStore,
    AddSink,
    AddSource,
    AddStateStore,
    ConnectStores,
    GlobalTable,
    ReadStream,
    ReadTable,
    Topics,
)
from headwater.model.operators.streams import (
    Aggregate,
    Branch,
    Cogroup,
    Count,
    GroupBy,
    GroupByKey,
    Join,
    JoinType,
    Merge,
    Process,
    ProcessValues,
    Reduce,
    Repartition,
    Split,
    Step,
    Suppress,
    To,
    ToStream,
    ToTable,
    Transform,
    TransformKind,
    TransformValues,
    WindowedBy,
)

Operator = (
    ReadStream
    | ReadTable
    | GlobalTable
    | AddGlobalStore
    | AddStateStore
    | Transform
    | Process
    | ProcessValues
    | Merge
    | Split
    | To
    | Repartition
    | GroupByKey
    | GroupBy
    | WindowedBy
    | Cogroup
    | Count
    | Reduce
    | Aggregate
    | Suppress
    | Join
    | ToTable
    | ToStream
    | TransformValues
    | AddSource
    | AddProcessor
    | AddReadOnlyStateStore
    | AddSink
    | ConnectStores
)

__all__ = [
    "AddGlobalStore",
    "AddProcessor",
    "AddReadOnlyStateStore",
    "AddSink",
    "AddSource",
    "AddStateStore",
    "Aggregate",
    "Branch",
    "Cogroup",
    "ConnectStores",
    "Count",
    "GlobalTable",
    "GroupBy",
    "GroupByKey",
    "Join",
    "JoinType",
    "Merge",
    "Operator",
    "Process",
    "ProcessValues",
    "ReadStream",
    "ReadTable",
    "Reduce",
    "Repartition",
    "Split",
    "Step",
    "Suppress",
    "To",
    "ToStream",
    "ToTable",
    "Topics",
    "Transform",
    "TransformKind",
    "TransformValues",
    "WindowedBy",
]
