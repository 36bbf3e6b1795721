"""Joins of a stream with a global table: no co-partitioning, no store of their own."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.joins.kinds import KINDS
from infra.compiler.dsl.declarations import WritesProcessor
from infra.compiler.dsl.formats import told
from infra.compiler.dsl.handles import GlobalTable, Handle, Stream
from infra.model import operators as op
from infra.model.behaviors import StreamGlobalJoin
from infra.model.operators import JoinType


def join_stream_with_global_table(builder: Builder, on: Stream, call: op.Join, table: GlobalTable) -> Handle:
    """Inner and left joins have the same prefix."""
    name = builder.named(call.name, "KSTREAM-LEFTJOIN-")
    behavior = StreamGlobalJoin(KINDS[call.type], call.key, call.value, table.store)
    node = builder.add(
        name,
        WritesProcessor(name, behavior=behavior),
        on.node,
        relaxes_null_keys=call.type is JoinType.LEFT,
    )
    return Stream(name, on.sources, node, on.rekeyed, told(on.record, call.serdes))
