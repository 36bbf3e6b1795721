"""Foreign-key joins of tables: 14 indices, two internal topics, two co-partition groups (facts 1.4)."""

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.calls.materialization import check_materialized
from headwater.compiler.dsl.calls.sources import TABLE_SOURCE, lazy_store_of
from headwater.compiler.dsl.declarations import (
    InternalSourceDeclaration,
    OldValues,
    ProcessorDeclaration,
    SinkDeclaration,
)
from headwater.compiler.dsl.formats import with_serdes, with_store_serdes
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.handles import Handle, Table, View
from headwater.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned
from headwater.compiler.version_differences import FOREIGN_KEY_NULLS, LOGGED_HEADERS
from headwater.model import operators as op
from headwater.model.behaviors import (
    ForeignKeyAnswer,
    ForeignKeyNotify,
    ForeignKeyReceive,
    ForeignKeyResolve,
    ForeignKeyResult,
    ForeignKeySend,
    JoinKind,
    RecordFormat,
    SinkSettings,
    SourceSettings,
    StoreSettings,
)
from headwater.model.nodes import ChangelogKind, RepartitionTopic

PREFIX = "KTABLE-FK-JOIN-"
REGISTRATION = PREFIX + "SUBSCRIPTION-REGISTRATION-"
RESPONSE = PREFIX + "SUBSCRIPTION-RESPONSE-"
RESOLVER = PREFIX + "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"
PROCESSOR = PREFIX + "SUBSCRIPTION-PROCESSOR-"
STORE = PREFIX + "SUBSCRIPTION-STATE-STORE-"
OUTPUT = PREFIX + "OUTPUT-"
SINK = "KTABLE-SINK-"


@attrs.frozen
class _Names:
    """The names, in the order in which they take indices."""

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
    names = _take_names(builder, call.name)
    result_store = builder.store_name(call.materialized, OUTPUT)
    for topic in (names.registration_topic, names.response_topic):
        builder.foreign_key_topics.append(RepartitionTopic(topic, is_foreign_key=True, at=builder.at))
    join = _Join(builder, call, on, foreign, names, call.type.kind)
    return join.resolve(join.answer(join.subscribe()), result_store)


@attrs.frozen
class _Join:
    """Adds the nodes of one join to the graph, in the order of its messages."""

    builder: Builder
    call: op.Join
    on: Table
    foreign: Table
    names: _Names
    kind: JoinKind

    def subscribe(self) -> GraphNode:
        """Add the nodes that send subscriptions to the right side; return the node that reads them there."""
        builder, names, on, foreign = self.builder, self.names, self.on, self.foreign
        asks = self._subscriptions
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
            SinkDeclaration(names.registration_topic, writes=SinkSettings(asks, foreign_key="subscription")),
            send,
        )
        source = builder.add(
            names.registration_source,
            InternalSourceDeclaration(
                names.registration_topic, SourceSettings(asks, foreign_key="subscription")
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
        return Table(names.result, sources, result, View.of(result_store, lazy_store), old_values, record)

    @property
    def _subscriptions(self) -> RecordFormat:
        return RecordFormat(self.foreign.record.key, self.on.record.key)


def _take_names(builder: Builder, name: str | None) -> _Names:
    return _Names(
        registration_topic=builder.suffixed(name, "-subscription-registration", REGISTRATION) + "-topic",
        send=builder.suffixed(name, "-subscription-registration-processor", REGISTRATION),
        registration_sink=builder.suffixed(name, "-subscription-registration-sink", SINK),
        registration_source=builder.suffixed(name, "-subscription-registration-source", TABLE_SOURCE),
        store=builder.suffixed(name, "-subscription-store", STORE),
        receive=builder.suffixed(name, "-subscription-receive", PROCESSOR),
        join_foreign=builder.suffixed(name, "-subscription-join-foreign", PROCESSOR),
        foreign_side=builder.suffixed(name, "-foreign-join-subscription", PROCESSOR),
        response_topic=builder.suffixed(name, "-subscription-response", RESPONSE) + "-topic",
        response_sink=builder.suffixed(name, "-subscription-response-sink", SINK),
        response_source=builder.suffixed(name, "-subscription-response-source", TABLE_SOURCE),
        resolver=builder.suffixed(name, "-subscription-response-resolver", RESOLVER),
        result=builder.suffixed(name, "-result", OUTPUT),
    )
