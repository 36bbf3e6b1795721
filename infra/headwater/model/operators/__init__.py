"""One frozen class for each call of the DSL and of the Processor API; the fields are the call's options.

`name` is what the user passes as `Named`, `Grouped`, `Joined`, `Repartitioned`, `Consumed.as` and so on;
None = not given. Expressions and Python classes are texts that only the runtime uses.
"""

from headwater.model.operators.grouping import (
    Aggregate,
    Cogroup,
    Count,
    GroupBy,
    GroupByKey,
    Reduce,
    Suppress,
    WindowedBy,
)
from headwater.model.operators.joins import Join, JoinType
from headwater.model.operators.processor_api import (
    AddProcessor,
    AddReadOnlyStateStore,
    AddSink,
    AddSource,
    ConnectStores,
)
from headwater.model.operators.sources import (
    AddGlobalStore,
    AddStateStore,
    GlobalTable,
    ReadStream,
    ReadTable,
    Topics,
)
from headwater.model.operators.steps import Step
from headwater.model.operators.streams import (
    Branch,
    Merge,
    Process,
    ProcessValues,
    Repartition,
    Split,
    To,
    Transform,
    TransformKind,
)
from headwater.model.operators.tables import ToStream, ToTable, TransformValues

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
