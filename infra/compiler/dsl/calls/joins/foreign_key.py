"""Foreign-key joins of tables: fourteen indices, two internal topics, two co-partition groups (facts 1.4)."""

import attrs

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.calls.materialization import check_materialized
from infra.compiler.dsl.calls.sources import reserve
from infra.compiler.dsl.changes import Changes
from infra.compiler.dsl.declarations import WritesInternalSource, WritesProcessor, WritesSink
from infra.compiler.dsl.formats import told, told_by_store
from infra.compiler.dsl.handles import Handle, Table, View
from infra.compiler.dsl.stores import KEY_VALUE_KINDS, Store, is_versioned
from infra.model import operators as op
from infra.model.behaviours import (
    ForeignKeyAnswer,
    ForeignKeyNotify,
    ForeignKeyReceive,
    ForeignKeyResolve,
    ForeignKeyResult,
    ForeignKeySend,
    JoinKind,
    Keeps,
    Reads,
    RecordFormat,
    Writes,
)
from infra.model.nodes import ChangelogKind, RepartitionTopic
from infra.model.operators import JoinType

PREFIX = "KTABLE-FK-JOIN-"
REGISTRATION = PREFIX + "SUBSCRIPTION-REGISTRATION-"
RESPONSE = PREFIX + "SUBSCRIPTION-RESPONSE-"
RESOLVER = PREFIX + "SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-"
PROCESSOR = PREFIX + "SUBSCRIPTION-PROCESSOR-"
STORE = PREFIX + "SUBSCRIPTION-STATE-STORE-"
OUTPUT = PREFIX + "OUTPUT-"
SINK = "KTABLE-SINK-"
SOURCE = "KTABLE-SOURCE-"


@attrs.frozen
class _Names:
    """In the order in which the indices are burned."""

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
    check_materialized(builder, call.materialized, KEY_VALUE_KINDS)
    on.view.materialize()
    foreign.view.materialize()
    on.changes.send_old()
    foreign.changes.send_old()
    record = told(told_by_store(on.record, call.materialized), call.serdes)
    names = _burn(builder, call.name)
    result_store = builder.store_name(call.materialized, OUTPUT)
    for topic in (names.registration_topic, names.response_topic):
        builder.foreign_key_topics.append(RepartitionTopic(topic, is_foreign_key=True, at=builder.at))

    kind: JoinKind = "left" if call.type is JoinType.LEFT else "inner"
    asks = RecordFormat(foreign.record.key, on.record.key)
    answers = RecordFormat(on.record.key, foreign.record.value)
    subscriptions = Store(
        names.store,
        ChangelogKind.KEY_VALUE,
        same_as=("subscriptions", names.store),
        keeps=Keeps("subscription", asks),
    )
    sends = ForeignKeySend(kind, call.foreign_key, on.record, foreign.record)
    send = builder.add(names.send, WritesProcessor(names.send, behaviour=sends), on.node)
    sink = builder.add(
        names.registration_sink,
        WritesSink(names.registration_topic, writes=Writes(asks, foreign_key="subscription")),
        send,
    )
    source = builder.add(
        names.registration_source,
        WritesInternalSource(names.registration_topic, Reads(asks, foreign_key="subscription")),
        sink,
    )
    builder.copartition(foreign.sources | {names.registration_source})
    receives = ForeignKeyReceive(names.store)
    receive = builder.add(
        names.receive, WritesProcessor(names.receive, (subscriptions,), behaviour=receives), source
    )
    answer = ForeignKeyAnswer(foreign.view.values)
    join_foreign = builder.add(
        names.join_foreign,
        WritesProcessor(names.join_foreign, connected=foreign.view.stores, behaviour=answer),
        receive,
    )
    notifies = ForeignKeyNotify(names.store)
    foreign_side = builder.add(
        names.foreign_side,
        WritesProcessor(names.foreign_side, (subscriptions,), behaviour=notifies),
        foreign.node,
    )
    response = builder.add(
        names.response_sink,
        WritesSink(names.response_topic, writes=Writes(answers, foreign_key="response")),
        join_foreign,
        foreign_side,
    )
    back = builder.add(
        names.response_source,
        WritesInternalSource(names.response_topic, Reads(answers, foreign_key="response")),
        response,
    )
    sources = builder.copartition(on.sources | {names.response_source})
    resolves = ForeignKeyResolve(kind, call.value, on.view.values, on.record)
    resolver = builder.add(
        names.resolver,
        WritesProcessor(names.resolver, connected=on.view.stores, behaviour=resolves),
        back,
    )
    reserved = reserve(result_store, call, record)
    changes = Changes(source=reserved)
    result = builder.add(
        names.result,
        WritesProcessor(names.result, reserved=reserved, behaviour=ForeignKeyResult(None), changes=changes),
        resolver,
        versioned=is_versioned(call.materialized),
    )
    view = View.of(result_store, reserved)
    return Table(names.result, sources, result, view, changes, record)


def _burn(builder: Builder, name: str | None) -> _Names:
    return _Names(
        registration_topic=builder.suffixed(name, "-subscription-registration", REGISTRATION) + "-topic",
        send=builder.suffixed(name, "-subscription-registration-processor", REGISTRATION),
        registration_sink=builder.suffixed(name, "-subscription-registration-sink", SINK),
        registration_source=builder.suffixed(name, "-subscription-registration-source", SOURCE),
        store=builder.suffixed(name, "-subscription-store", STORE),
        receive=builder.suffixed(name, "-subscription-receive", PROCESSOR),
        join_foreign=builder.suffixed(name, "-subscription-join-foreign", PROCESSOR),
        foreign_side=builder.suffixed(name, "-foreign-join-subscription", PROCESSOR),
        response_topic=builder.suffixed(name, "-subscription-response", RESPONSE) + "-topic",
        response_sink=builder.suffixed(name, "-subscription-response-sink", SINK),
        response_source=builder.suffixed(name, "-subscription-response-source", SOURCE),
        resolver=builder.suffixed(name, "-subscription-response-resolver", RESOLVER),
        result=builder.suffixed(name, "-result", OUTPUT),
    )
