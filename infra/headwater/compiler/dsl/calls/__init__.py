"""The function of each call: one module for each family of operators, one row for each call and handle type.

A function takes the builder, the handle on which the call is made, and the operator; those in
`CALLS_WITH_OTHER` also take the handle that is passed as argument. It returns the handle of the result. The
order of lines in a function is the order in which it takes name indices, so it must not change.
"""

from collections.abc import Callable, Mapping
from typing import Any

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls import cogroups, grouping, joins, sources, streams, tables
from headwater.compiler.dsl.handles import (
    CogroupedStream,
    GroupedStream,
    GroupedTable,
    Handle,
    Stream,
    Table,
    WindowedCogroupedStream,
    WindowedStream,
)
from headwater.model import operators as op
from headwater.model import processor_api

# Each function has its own operator and handle types, which one table cannot express.
Call = Callable[[Builder, Any, Any], Handle]
CallWithOther = Callable[[Builder, Any, Any, Any], Handle]

STARTS: Mapping[type, Callable[[Builder, Any], Handle]] = {
    op.ReadStream: sources.stream,
    op.ReadTable: sources.table,
    op.GlobalTable: sources.global_table,
    processor_api.AddStateStore: sources.add_state_store,
    processor_api.AddGlobalStore: sources.add_global_store,
}

CALLS: Mapping[tuple[type, type], Call] = {
    (op.Transform, Stream): streams.transform,
    (op.Process, Stream): streams.process,
    (op.ProcessValues, Stream): streams.process_values,
    (op.To, Stream): streams.to,
    (op.Repartition, Stream): streams.repartition,
    (op.ToTable, Stream): streams.to_table,
    (op.GroupByKey, Stream): grouping.group_by_key,
    (op.GroupBy, Stream): grouping.group_by,
    (op.WindowedBy, GroupedStream): grouping.windowed_by,
    (op.Count, GroupedStream): grouping.count,
    (op.Reduce, GroupedStream): grouping.reduce,
    (op.Aggregate, GroupedStream): grouping.aggregate,
    (op.Count, WindowedStream): grouping.windowed_count,
    (op.Reduce, WindowedStream): grouping.windowed_reduce,
    (op.Aggregate, WindowedStream): grouping.windowed_aggregate,
    (op.WindowedBy, CogroupedStream): cogroups.windowed_by,
    (op.Aggregate, CogroupedStream): cogroups.aggregate,
    (op.Aggregate, WindowedCogroupedStream): cogroups.windowed_aggregate,
    (op.Transform, Table): tables.transform,
    (op.TransformValues, Table): tables.transform_values,
    (op.ToStream, Table): tables.to_stream,
    (op.GroupBy, Table): tables.group_by,
    (op.Suppress, Table): tables.suppress,
    (op.Count, GroupedTable): grouping.table_count,
    (op.Reduce, GroupedTable): grouping.table_reduce,
    (op.Aggregate, GroupedTable): grouping.table_aggregate,
}

CALLS_WITH_OTHER: Mapping[tuple[type, type], CallWithOther] = {
    (op.Merge, Stream): streams.merge,
    (op.Join, Stream): joins.join,
    (op.Join, Table): joins.join,
    (op.Cogroup, GroupedStream): cogroups.cogroup,
    (op.Cogroup, CogroupedStream): cogroups.cogroup,
}
