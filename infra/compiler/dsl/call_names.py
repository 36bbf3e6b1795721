"""How the DSL and the Processor API spell the operators of the model."""

from infra.model import operators as op
from infra.model.operators import Operator

_CALL_NAMES: dict[type, str] = {
    op.ReadStream: "stream",
    op.ReadTable: "table",
    op.GlobalTable: "globalTable",
    op.AddStateStore: "addStateStore",
    op.AddGlobalStore: "addGlobalStore",
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
    op.AddSource: "addSource",
    op.AddProcessor: "addProcessor",
    op.AddSink: "addSink",
    op.AddReadOnlyStateStore: "addReadOnlyStateStore",
    op.ConnectStores: "connectProcessorAndStateStores",
}
NAME_IS_FREE = (op.Repartition, op.Suppress, op.GroupByKey)
"""Calls whose name Kafka Streams does not check."""


def call_name(operator: Operator) -> str:
    """As the DSL spells it."""
    if isinstance(operator, op.Transform):
        return operator.kind.value
    if isinstance(operator, op.Join):
        return operator.type.value
    return _CALL_NAMES[type(operator)]
