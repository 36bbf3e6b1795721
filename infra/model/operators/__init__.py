"""One frozen class for each call of the DSL and of the Processor API; the fields are the call's options.

`name` is what the user passes as `Named`, `Grouped`, `Joined`, `Repartitioned`, `Consumed.as` and so on;
None = not given. Expressions and Python classes are texts that only the runtime uses.
"""

from infra.model.operators.grouping import (
    Aggregate,
    Cogroup,
    Count,
    GroupBy,
    GroupByKey,
    Reduce,
    Suppress,
    WindowedBy,
)
from infra.model.operators.joins import Join, JoinType
from infra.model.operators.processor_api import (
    AddProcessor,
    AddReadOnlyStateStore,
    AddSink,
    AddSource,
    ConnectStores,
)
from infra.model.operators.sources import (
    AddGlobalStore,
    AddStateStore,
    GlobalTable,
    ReadStream,
    ReadTable,
    Topics,
)
from infra.model.operators.steps import Step
from infra.model.operators.streams import (
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
from infra.model.operators.tables import ToStream, ToTable, TransformValues

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
