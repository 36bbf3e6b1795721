"""`StreamsBuilder#stream`, `table`, `globalTable`, `addStateStore`, `addGlobalStore`."""

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_builders, check_materialized
from headwater.compiler.dsl.declarations import (
    GlobalStoreDeclaration,
    OldValues,
    SourceDeclaration,
    StoreDeclaration,
    TableSourceDeclaration,
)
from headwater.compiler.dsl.formats import with_serdes, with_store_serdes
from headwater.compiler.dsl.handles import GlobalTable, Handle, Nothing, Stream, Table, View
from headwater.compiler.dsl.messages import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import (
    KEY_VALUE_KINDS,
    LazyStore,
    built_store,
    is_versioned,
    key_value_store,
)
from headwater.compiler.version_differences import UNNAMED_GLOBAL_STORE_FAILS
from headwater.model import operators as op
from headwater.model import processor_api
from headwater.model.formats import RecordFormat, SourceSettings

SOURCE = "KSTREAM-SOURCE-"
TABLE_SOURCE = "KTABLE-SOURCE-"


def stream(builder: Builder, call: op.ReadStream) -> Handle:
    name = builder.named(call.name, SOURCE)
    reads = _reads_of(call)
    declares = SourceDeclaration(call.topics.names, call.topics.pattern, call.offset_reset, reads)
    node = builder.add(name, declares)
    return Stream(name, frozenset({name}), node, record=reads.format)


def _reads_of(call: op.ReadStream | op.ReadTable) -> SourceSettings:
    materialized = call.materialized if isinstance(call, op.ReadTable) else None
    record = with_serdes(with_store_serdes(RecordFormat(), materialized), call.serdes)
    return SourceSettings(record, call.offset_reset, call.timestamp)


def table(builder: Builder, call: op.ReadTable) -> Handle:
    """`StreamsBuilder#table`: the store is created only if it is needed, its name always takes an index."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    store_name = builder.store_name(call.materialized, call.topic + "-")
    source = builder.suffixed(call.name, "-source", SOURCE)
    processor = builder.named(call.name, TABLE_SOURCE)
    reads = _reads_of(call)
    lazy_store = lazy_store_of(store_name, call, reads.format)
    old_values = OldValues(source=lazy_store)
    declares = TableSourceDeclaration(
        call.topic, source, processor, lazy_store, reads=reads, old_values=old_values
    )
    node = builder.add(processor, declares, versioned=is_versioned(call.materialized))
    view = View.from_store(store_name, lazy_store)
    return Table(processor, frozenset({source}), node, view, old_values, reads.format)


def lazy_store_of(
    store_name: str, call: op.ReadTable | op.ToTable | op.Join, record: RecordFormat
) -> LazyStore:
    """Return a store that exists if the user named it or if another node needs it (facts 2.3)."""
    materialized = call.materialized
    is_named = materialized is not None and materialized.store_name is not None
    return LazyStore(key_value_store(store_name, materialized, record), is_named)


def global_table(builder: Builder, call: op.GlobalTable) -> Handle:
    """`StreamsBuilder#globalTable`: the store always exists, and the topic serves as its changelog."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    store_name = _global_store_name(builder, call)
    if is_versioned(call.materialized):
        return builder.reject(
            topology_error(
                f"Global table {call.topic} has a versioned store.",
                topic=call.topic,
                expected="a store that is not versioned",
                found=f"versioned store {store_name}",
                fix="Give it a plain key-value store, or read the topic as a `table`.",
            )
        )
    source = builder.suffixed(call.name, "-source", SOURCE)
    processor = builder.named(call.name, TABLE_SOURCE)
    record = with_serdes(with_store_serdes(RecordFormat(), call.materialized), call.serdes)
    store = key_value_store(store_name, call.materialized, record)
    lazy_store = LazyStore(attrs.evolve(store, logged=True, overrides={}), needed=True)
    reads = SourceSettings(record)
    declares = TableSourceDeclaration(call.topic, source, processor, lazy_store, is_global=True, reads=reads)
    builder.add(processor, declares)
    return GlobalTable(store_name, record)


def _global_store_name(builder: Builder, call: op.GlobalTable) -> str:
    """Return the store's name; since 4.0, Kafka Streams fails for a `Materialized` without a name."""
    given = call.materialized.store_name if call.materialized is not None else None
    if given is not None:
        return given
    if call.materialized is not None and UNNAMED_GLOBAL_STORE_FAILS.is_in(builder.config.version):
        builder.reject(
            topology_error(
                f"Global table {call.topic} has a `materialized` without a store name.",
                throws=ARGUMENT,
                topic=call.topic,
                expected="no `materialized`, or one with a store's name",
                found="materialized without a name",
                fix="Name the store, or remove `materialized`.",
            )
        )
    name = builder.names.store(call.topic + "-")
    builder.list_unnamed_store(name, logged=False)
    return name


def add_state_store(builder: Builder, call: processor_api.AddStateStore) -> Handle:
    check_builders(builder, [call.store])
    builder.add(call.store.name, StoreDeclaration(built_store(call.store)))
    return Nothing("addStateStore")


def add_global_store(builder: Builder, call: processor_api.AddGlobalStore) -> Handle:
    """`StreamsBuilder#addGlobalStore`: a processor of the user fills the store from the topic."""
    check_builders(builder, [call.store])
    source = builder.suffixed(call.name, "-source", SOURCE)
    processor = builder.named(call.name, TABLE_SOURCE)
    reads = SourceSettings(with_serdes(with_serdes(RecordFormat(), call.store.serdes), call.serdes))
    store = built_store(call.store)
    declares = GlobalStoreDeclaration(call.topic, source, processor, store, call.processor_class, reads)
    builder.add(processor, declares)
    return Nothing("addGlobalStore")
