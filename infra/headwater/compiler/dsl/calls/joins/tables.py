"""Joins with tables: of a stream with a table or a global table, of two tables, also by a foreign key."""

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.calls.sources import TABLE_SOURCE, lazy_store_of
from headwater.compiler.dsl.calls.streams import repartitioned_for_join
from headwater.compiler.dsl.declarations import (
    InternalSourceDeclaration,
    OldValues,
    ProcessorDeclaration,
    SinkDeclaration,
    TableJoinDeclaration,
)
from headwater.compiler.dsl.formats import with_serdes, with_store_serdes
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import GlobalTable, Handle, Stream, Table, View
from headwater.compiler.dsl.messages import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned, key_value_store
from headwater.compiler.java.collections import string_order_from
from headwater.compiler.version_differences import (
    FOREIGN_KEY_NULLS,
    LOGGED_HEADERS,
    NULL_GLOBAL_KEYS,
    STORES_OF_SUPPLIERS_FIRST,
)
from headwater.model import operators as op
from headwater.model.behaviors import (
    ForeignKeyAnswer,
    ForeignKeyNotify,
    ForeignKeyReceive,
    ForeignKeyResolve,
    ForeignKeyResult,
    ForeignKeySend,
    StreamGlobalJoin,
    StreamTableJoin,
    TableTableJoin,
)
from headwater.model.formats import (
    JoinedView,
    JoinKind,
    RecordFormat,
    SinkSettings,
    SourceSettings,
    StoreSettings,
)
from headwater.model.nodes import ChangelogKind, RepartitionTopic
from headwater.model.operators import JoinType

_MERGE = "KTABLE-MERGE-"
_FK = "KTABLE-FK-JOIN-"
_FK_REGISTRATION = _FK + "SUBSCRIPTION-REGISTRATION-"
_FK_RESPONSE = _FK + "SUBSCRIPTION-RESPONSE-"
_FK_RESOLVER = _FK + "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"
_FK_PROCESSOR = _FK + "SUBSCRIPTION-PROCESSOR-"
_FK_STORE = _FK + "SUBSCRIPTION-STATE-STORE-"
_FK_OUTPUT = _FK + "OUTPUT-"
_FK_SINK = "KTABLE-SINK-"


def join_stream_with_table(builder: Builder, on: Stream, call: op.Join, table: Table) -> Handle:
    """`KStreamImpl#doStreamTableJoin`: only the stream is repartitioned, if its key may have changed."""
    this = on
    if on.repartition_required:
        prefix = call.name if call.name is not None else on.name
        this = repartitioned_for_join(builder, on, prefix, named_by_user=call.name is not None)
    sources = builder.copartition(this.sources | table.sources)
    left = call.type is JoinType.LEFT
    name = builder.named(call.name, "KSTREAM-LEFTJOIN-" if left else "KSTREAM-JOIN-")
    buffer = _buffer_stores(builder, call, name, table, this.record)
    behavior = StreamTableJoin(
        call.type.kind,
        call.value,
        table.view.values,
        call.grace_ms,
        buffer[0].name if buffer else None,
    )
    history = call.grace_ms if table.node.versioned is not False else None
    declares = ProcessorDeclaration(
        name,
        buffer,
        table.view.materialize(),
        required_history_ms=history,
        behavior=behavior,
        connected_first=not STORES_OF_SUPPLIERS_FIRST.is_in(builder.config.version),
    )
    node = builder.add(name, declares, this.node, relaxes_null_keys=left)
    return Stream(name, sources, node, record=with_serdes(this.record, call.serdes))


def _buffer_stores(
    builder: Builder, call: op.Join, name: str, table: Table, record: RecordFormat
) -> tuple[Store, ...]:
    """Return the buffer store of a join with a grace period; it is always logged."""
    if call.grace_ms is None:
        return ()
    if table.node.versioned is False:
        builder.reject(
            topology_error(
                f"{name} has a grace period, but table {table.name} is not versioned.",
                throws=ARGUMENT,
                node=name,
                expected="a versioned table",
                found="a table that is not versioned",
                fix="Give the table a supplier of a versionedKeyValue store, or drop `grace`.",
            )
        )
    store = Store(
        f"{name}-Buffer", ChangelogKind.KEY_VALUE, keeps=StoreSettings("joinBuffer", record, call.grace_ms)
    )
    if call.name is None:
        builder.list_unnamed_store(store.name, logged=True)
    return (store,)


def join_stream_with_global_table(builder: Builder, on: Stream, call: op.Join, table: GlobalTable) -> Handle:
    """`KStreamImpl#globalTableJoin`: no co-partitioning, no store; all joins have the same prefix."""
    name = builder.named(call.name, "KSTREAM-LEFTJOIN-")
    behavior = StreamGlobalJoin(
        call.type.kind,
        call.key,
        call.value,
        table.store,
        forwards_null_table_keys=NULL_GLOBAL_KEYS.is_in(builder.config.version),
    )
    node = builder.add(
        name,
        ProcessorDeclaration(name, behavior=behavior),
        on.node,
        relaxes_null_keys=call.type is JoinType.LEFT,
    )
    return Stream(name, on.sources, node, on.repartition_required, with_serdes(on.record, call.serdes))


def join_tables(builder: Builder, on: Table, call: op.Join, other: Table) -> Handle:
    """`KTableImpl#doJoin`: the result has its own store only if a `Materialized` is passed.

    Otherwise its values are computed from the stores of both parents.
    """
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    record = with_serdes(with_store_serdes(on.record, call.materialized), call.serdes)
    store = None
    if call.materialized is not None:
        store = key_value_store(builder.store_name(call.materialized, _MERGE), call.materialized, record)
    merge = builder.named(call.name, _MERGE)
    sources = builder.copartition(on.sources | other.sources)
    this_join = builder.suffixed(call.name, "-join-this", "KTABLE-JOINTHIS-")
    other_join = builder.suffixed(call.name, "-join-other", "KTABLE-JOINOTHER-")
    this_stores, other_stores = on.view.materialize(), other.view.materialize()
    kind = call.type.kind
    if call.type is not JoinType.INNER:
        on.old_values.enable()
    if call.type is JoinType.OUTER:
        other.old_values.enable()
    old_values = OldValues((on.old_values, other.old_values))
    left, right = on.view.values, other.view.values
    declares = TableJoinDeclaration(
        on.name,
        other.name,
        this_join,
        other_join,
        merge,
        this_stores,
        other_stores,
        store,
        TableTableJoin(kind, is_left=True, value=call.value, own=left, other=right),
        TableTableJoin(kind, is_left=False, value=call.value, own=right, other=left),
        old_values,
    )
    node = builder.add(merge, declares, on.node, other.node, versioned=is_versioned(call.materialized))
    if store is not None:
        return Table(merge, sources, node, View.from_store(store.name), old_values, record)
    values = JoinedView(kind, left, right, call.value)
    view = View(_order_stores(this_stores, other_stores), values)
    return Table(merge, sources, node, view, old_values, record)


def _order_stores(this_stores: tuple[str, ...], other_stores: tuple[str, ...]) -> tuple[str, ...]:
    """Return the stores of both sides in the order of `KTableKTableAbstractJoinValueGetterSupplier`.

    Each side of the merge collects them in a hash set, and the merge collects both sets in another one.
    """
    stores = string_order_from(len(this_stores) + len(other_stores), (*this_stores, *other_stores))
    return string_order_from(2 * len(stores), stores)


@attrs.frozen
class _ForeignKeyNames:
    """The names of a join by a foreign key, in the order in which they take indices."""

    registration_topic: str
    send: str
    registration_sink: str
    registration_source: str
    store: str
    receive: str
    join_foreign: str
    foreign_side: str
    response_topic: str
    response_sink: str
    response_source: str
    resolver: str
    result: str


def join_by_foreign_key(builder: Builder, on: Table, call: op.Join, foreign: Table) -> Handle:
    """`KTableImpl#doJoinOnForeignKey` (KIP-213): both tables are materialized and send old values."""
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    on.view.materialize()
    foreign.view.materialize()
    on.old_values.enable()
    foreign.old_values.enable()
    names = _take_foreign_key_names(builder, call.name)
    result_store = builder.store_name(call.materialized, _FK_OUTPUT)
    for topic in (names.registration_topic, names.response_topic):
        builder.foreign_key_topics.append(RepartitionTopic(topic, is_foreign_key=True, at=builder.at))
    join = _ForeignKeyJoin(builder, call, on, foreign, names, call.type.kind)
    return join.resolve(join.answer(join.subscribe()), result_store)


@attrs.frozen
class _ForeignKeyJoin:
    """Adds the nodes of one join by a foreign key to the graph, in the order of its messages."""

    builder: Builder
    call: op.Join
    on: Table
    foreign: Table
    names: _ForeignKeyNames
    kind: JoinKind

    def subscribe(self) -> GraphNode:
        """Add the nodes that send subscriptions to the right side; return the node that reads them there."""
        builder, names, on, foreign = self.builder, self.names, self.on, self.foreign
        subscriptions = self._subscriptions
        sends = ForeignKeySend(
            self.kind,
            self.call.foreign_key,
            on.record,
            foreign.record,
            has_null_fixes=FOREIGN_KEY_NULLS.is_in(builder.config.version),
        )
        send = builder.add(names.send, ProcessorDeclaration(names.send, behavior=sends), on.node)
        sink = builder.add(
            names.registration_sink,
            SinkDeclaration(
                names.registration_topic, writes=SinkSettings(subscriptions, foreign_key="subscription")
            ),
            send,
        )
        source = builder.add(
            names.registration_source,
            InternalSourceDeclaration(
                names.registration_topic, SourceSettings(subscriptions, foreign_key="subscription")
            ),
            sink,
        )
        builder.copartition(foreign.sources | {names.registration_source})
        return source

    def answer(self, subscribed: GraphNode) -> GraphNode:
        """Add the nodes that respond to subscriptions and changes; return the node that reads responses."""
        builder, names, foreign = self.builder, self.names, self.foreign
        store = Store(
            names.store,
            ChangelogKind.KEY_VALUE,
            same_as=("subscriptions", names.store),
            keeps=StoreSettings(
                "subscription",
                self._subscriptions,
                logs_headers=LOGGED_HEADERS.is_in(builder.config.version),
            ),
        )
        receives = ForeignKeyReceive(names.store)
        receive = builder.add(
            names.receive, ProcessorDeclaration(names.receive, (store,), behavior=receives), subscribed
        )
        answers = ForeignKeyAnswer(foreign.view.values)
        join_foreign = builder.add(
            names.join_foreign,
            ProcessorDeclaration(names.join_foreign, connected=foreign.view.stores, behavior=answers),
            receive,
        )
        notifies = ForeignKeyNotify(names.store)
        foreign_side = builder.add(
            names.foreign_side,
            ProcessorDeclaration(names.foreign_side, (store,), behavior=notifies),
            foreign.node,
        )
        response = RecordFormat(self.on.record.key, foreign.record.value)
        sink = builder.add(
            names.response_sink,
            SinkDeclaration(names.response_topic, writes=SinkSettings(response, foreign_key="response")),
            join_foreign,
            foreign_side,
        )
        return builder.add(
            names.response_source,
            InternalSourceDeclaration(names.response_topic, SourceSettings(response, foreign_key="response")),
            sink,
        )

    def resolve(self, answered: GraphNode, result_store: str) -> Table:
        """Add the nodes that join responses with the left table; return the result."""
        builder, call, names, on = self.builder, self.call, self.names, self.on
        sources = builder.copartition(on.sources | {names.response_source})
        resolves = ForeignKeyResolve(self.kind, call.value, on.view.values, on.record)
        resolver = builder.add(
            names.resolver,
            ProcessorDeclaration(names.resolver, connected=on.view.stores, behavior=resolves),
            answered,
        )
        record = with_serdes(with_store_serdes(on.record, call.materialized), call.serdes)
        lazy_store = lazy_store_of(result_store, call, record)
        old_values = OldValues(source=lazy_store)
        behavior = ForeignKeyResult(None)
        result = builder.add(
            names.result,
            ProcessorDeclaration(
                names.result, lazy_store=lazy_store, behavior=behavior, old_values=old_values
            ),
            resolver,
            versioned=is_versioned(call.materialized),
        )
        return Table(
            names.result, sources, result, View.from_store(result_store, lazy_store), old_values, record
        )

    @property
    def _subscriptions(self) -> RecordFormat:
        return RecordFormat(self.foreign.record.key, self.on.record.key)


def _take_foreign_key_names(builder: Builder, name: str | None) -> _ForeignKeyNames:
    return _ForeignKeyNames(
        registration_topic=builder.suffixed(name, "-subscription-registration", _FK_REGISTRATION) + "-topic",
        send=builder.suffixed(name, "-subscription-registration-processor", _FK_REGISTRATION),
        registration_sink=builder.suffixed(name, "-subscription-registration-sink", _FK_SINK),
        registration_source=builder.suffixed(name, "-subscription-registration-source", TABLE_SOURCE),
        store=builder.suffixed(name, "-subscription-store", _FK_STORE),
        receive=builder.suffixed(name, "-subscription-receive", _FK_PROCESSOR),
        join_foreign=builder.suffixed(name, "-subscription-join-foreign", _FK_PROCESSOR),
        foreign_side=builder.suffixed(name, "-foreign-join-subscription", _FK_PROCESSOR),
        response_topic=builder.suffixed(name, "-subscription-response", _FK_RESPONSE) + "-topic",
        response_sink=builder.suffixed(name, "-subscription-response-sink", _FK_SINK),
        response_source=builder.suffixed(name, "-subscription-response-source", TABLE_SOURCE),
        resolver=builder.suffixed(name, "-subscription-response-resolver", _FK_RESOLVER),
        result=builder.suffixed(name, "-result", _FK_OUTPUT),
    )
