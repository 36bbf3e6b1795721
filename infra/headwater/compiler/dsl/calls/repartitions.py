"""`repartition`, `toTable`, and the repartition of a stream before a join."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.calls.sources import lazy_store_of
from headwater.compiler.dsl.declarations import OldValues, ProcessorDeclaration
from headwater.compiler.dsl.formats import with_serdes, with_store_serdes
from headwater.compiler.dsl.handles import Handle, Stream, Table, View
from headwater.compiler.dsl.messages import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, is_versioned
from headwater.model import operators as op
from headwater.model.behaviors import TableSource

TO_TABLE = "KSTREAM-TOTABLE-"


def repartition(builder: Builder, on: Stream, call: op.Repartition) -> Handle:
    """`KStream#repartition`: each call has its own topic, which no optimization merges."""
    if call.partitions is not None and call.partitions < 1:
        builder.reject(
            topology_error(
                f"`repartition` has a partition count of {call.partitions}.",
                throws=ARGUMENT,
                when="when it starts",
                node=call.name,
                expected="at least 1",
                found=str(call.partitions),
                at=builder.at,
                fix="Set `partitions` to 1 or more, or omit it: then the count follows the source topics.",
            )
        )
    prefix = call.name if call.name is not None else builder.names.processor("KSTREAM-REPARTITION-")
    record = with_serdes(on.record, call.serdes)
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
    """`KStream#toTable`: the stream is repartitioned first if its key may have changed."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    name = builder.named(call.name, TO_TABLE)
    store_name = builder.store_name(call.materialized, TO_TABLE)
    parent, sources = on.node, on.sources
    record = with_serdes(with_store_serdes(on.record, call.materialized), call.serdes)
    if on.repartition_required:
        parent = builder.repartition(name, record, named_by_user=call.name is not None)
        builder.attach(parent, on.node)
        sources = frozenset({parent.name})
    lazy_store = lazy_store_of(store_name, call, record)
    old_values = OldValues(source=lazy_store)
    declares = ProcessorDeclaration(
        name, lazy_store=lazy_store, behavior=TableSource(None), old_values=old_values
    )
    node = builder.add(name, declares, parent, versioned=is_versioned(call.materialized))
    return Table(name, sources, node, View.of(store_name, lazy_store), old_values, record)


def repartitioned_for_join(builder: Builder, stream: Stream, prefix: str, *, named_by_user: bool) -> Stream:
    """Return the repartitioned stream.

    Later joins of the same `KStream` object without a name share its last repartition.
    """
    made = builder.repartition(prefix, stream.record, named_by_user=named_by_user)
    kept = builder.stream_repartitions.get(stream)
    if kept is None or prefix != stream.name:
        kept = builder.attach(made, stream.node)
        builder.stream_repartitions[stream] = kept
    builder.note_shared_repartition(made.name, kept)
    return Stream(made.name, frozenset({made.name}), kept, record=stream.record)
