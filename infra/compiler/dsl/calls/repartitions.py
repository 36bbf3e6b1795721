"""`repartition`, `toTable`, and the repartition that a join makes of a key-changed stream."""

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.materialization import check_materialized
from infra.compiler.dsl.calls.sources import reserve
from infra.compiler.dsl.declarations import WritesProcessor
from infra.compiler.dsl.formats import told, told_by_store
from infra.compiler.dsl.handles import Handle, Stream, Table, View
from infra.compiler.dsl.old_values import Changes
from infra.compiler.dsl.problems import ARGUMENT, refused
from infra.compiler.dsl.stores import KEY_VALUE_KINDS, is_versioned
from infra.model import operators as op
from infra.model.behaviors import TableSource

TO_TABLE = "KSTREAM-TOTABLE-"


def repartition(builder: Builder, on: Stream, call: op.Repartition) -> Handle:
    """`KStream#repartition`: an own topic for this call alone, which no optimization merges."""
    if call.partitions is not None and call.partitions < 1:
        builder.refuse(
            refused(
                f"`repartition` asks for {call.partitions} partitions.",
                throws=ARGUMENT,
                when="when it starts",
                node=call.name,
                expected="at least 1",
                found=str(call.partitions),
                at=builder.at,
                fix="Ask for 1 or more, or leave the count to the source topics.",
            )
        )
    prefix = call.name if call.name is not None else builder.names.processor("KSTREAM-REPARTITION-")
    record = told(on.record, call.serdes)
    node = builder.repartition(
        prefix,
        record,
        named_by_user=call.name is not None,
        partitions=call.partitions,
        explicit=True,
        partitioner=call.partitioner,
    )
    builder.attach(node, on.node)
    return Stream(node.name, frozenset({node.name}), node, record=record)


def to_table(builder: Builder, on: Stream, call: op.ToTable) -> Handle:
    """`KStream#toTable`: a stream whose key has changed is repartitioned first."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    name = builder.named(call.name, TO_TABLE)
    store_name = builder.store_name(call.materialized, TO_TABLE)
    parent, sources = on.node, on.sources
    record = told(told_by_store(on.record, call.materialized), call.serdes)
    if on.rekeyed:
        parent = builder.repartition(name, record, named_by_user=call.name is not None)
        builder.attach(parent, on.node)
        sources = frozenset({parent.name})
    reserved = reserve(store_name, call, record)
    changes = Changes(source=reserved)
    declares = WritesProcessor(name, reserved=reserved, behavior=TableSource(None), changes=changes)
    node = builder.add(name, declares, parent, versioned=is_versioned(call.materialized))
    return Table(name, sources, node, View.of(store_name, reserved), changes, record)


def repartitioned_for_join(builder: Builder, stream: Stream, prefix: str, *, named_by_user: bool) -> Stream:
    """The stream as a join reads it: the object keeps its last repartition for later joins without a name."""
    made = builder.repartition(prefix, stream.record, named_by_user=named_by_user)
    kept = builder.stream_repartitions.get(stream)
    if kept is None or prefix != stream.name:
        kept = builder.attach(made, stream.node)
        builder.stream_repartitions[stream] = kept
    builder.read_instead(made.name, kept)
    return Stream(made.name, frozenset({made.name}), kept, record=stream.record)
