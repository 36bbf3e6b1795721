"""Foreign-key joins of tables (KIP-213).

The left task sends a *subscription* to the task of the foreign key, with a hash of the left value. That task
stores it and responds with its current value, and with each later value. The left task joins a response only
if its current value has the hash in the response: outdated responses are dropped.

A subscription names the left task, which gets the response. If the application has a number of processors
(KIP-287), that task may be another one when the response is sent. So the subscription names none, as those
before Kafka Streams 3.4: the response goes to the partition of its key.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from headwater.model.behaviors import (
    ForeignKeyAnswer,
    ForeignKeyNotify,
    ForeignKeyReceive,
    ForeignKeyResolve,
    ForeignKeyResult,
    ForeignKeySend,
    TableSource,
)
from headwater.model.formats import Format
from headwater_spark.engine.operators.interface import OperatorContext, OperatorFactory, Process
from headwater_spark.engine.operators.tables import table_source
from headwater_spark.engine.operators.views import value_getter
from headwater_spark.engine.records import Headers, Value
from headwater_spark.engine.serdes import Response, Subscription, subscription_serde
from headwater_spark.engine.serdes.internal_topics import (
    DELETE_AND_PROPAGATE,
    DELETE_QUIETLY,
    LATEST_VERSION,
    NULL_IF_MISSING,
    ONLY_IF_PRESENT,
    VERSION_WITHOUT_PARTITION,
    murmur3_128,
)
from headwater_spark.engine.stores.key_value import TimestampedKeyValueBytes

_LENGTH = 4


def foreign_key_send(behavior: ForeignKeySend, context: OperatorContext) -> Process:
    """`SubscriptionSendProcessorSupplier`."""
    instructions = _INSTRUCTIONS[behavior.kind == "left", behavior.has_null_fixes]
    foreign_key_of = context.expression(behavior.foreign_key, "key", "value")
    serialize_foreign = context.key_serde(behavior.foreign.key).serialize
    serialize_left = context.value_serde(behavior.left.value).serialize
    forward, task, name, versioned = context.forward, context.task, context.node.name, behavior.versioned
    follows_key = _follows_key(behavior.left.key, context)

    def serialized(foreign_key: Value) -> bytes | None:
        return None if foreign_key is None else serialize_foreign(foreign_key)

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        new, old, latest = change
        if versioned and not latest:
            task.drop(name, "out of order")
            return
        old_key = None if old is None else foreign_key_of(key, old)
        new_key = None if new is None else foreign_key_of(key, new)
        moved = serialized(old_key) != serialized(new_key)
        messages = instructions(_ForeignKeys(old is not None, old_key, new is not None, new_key, moved))
        if messages is None:
            task.drop(name, "null foreign key")
            return
        hashed = None if new is None else murmur3_128(serialize_left(new))
        to = (None, VERSION_WITHOUT_PARTITION) if follows_key(key) else (task.partition, LATEST_VERSION)
        for foreign_key, instruction in messages:
            forward(foreign_key, Subscription(hashed, instruction, key, *to), timestamp, headers)

    return process


def _follows_key(left: Format | None, context: OperatorContext) -> Callable[[Value], bool]:
    """Return whether the task of a left row is always the task of its key, whatever their number is.

    It is not if each partition has a task, or if the input is not partitioned by the hash of the key's bytes.
    """
    if left is not None and left.window is not None:
        return lambda _key: False
    serialize, own = context.key_serde(left).serialize, context.task.partition
    processor_of_key = context.task.program.processor_of_key
    return lambda key: processor_of_key(serialize(key)) == own


Messages = tuple[tuple[Value, int], ...]
"""(foreign key, instruction) pairs in the order in which they are sent."""


class _ForeignKeys(NamedTuple):
    """The foreign keys of the old and the new row of a change."""

    had: bool
    old: Value
    has: bool
    new: Value
    moved: bool


def _left_instructions(keys: _ForeignKeys) -> Messages | None:
    if not keys.had:
        return ((keys.new, NULL_IF_MISSING),) if keys.has else ()
    gone = ((keys.old, DELETE_QUIETLY),) if keys.old is not None and keys.moved else ()
    return (*gone, (keys.new, NULL_IF_MISSING))


def _inner_instructions(keys: _ForeignKeys) -> Messages | None:
    """Return the messages to send; None = drop the change because of a null foreign key."""
    if keys.old is None and keys.new is None:
        return None if keys.had or keys.has else ()
    if keys.old is None:
        return ((keys.new, ONLY_IF_PRESENT),)
    if keys.new is None:
        return ((keys.old, DELETE_AND_PROPAGATE),)
    if not keys.moved:
        return ((keys.new, ONLY_IF_PRESENT),)
    return ((keys.old, DELETE_QUIETLY), (keys.new, NULL_IF_MISSING))


def _left_instructions_before(keys: _ForeignKeys) -> Messages | None:
    """Return the messages without the fix for KAFKA-16394: a change of the foreign key deletes the result."""
    if not keys.had:
        return ((keys.new, NULL_IF_MISSING),) if keys.has else ()
    gone = ((keys.old, DELETE_AND_PROPAGATE),) if keys.old is not None and keys.moved else ()
    return (*gone, (keys.new, NULL_IF_MISSING))


def _inner_instructions_before(keys: _ForeignKeys) -> Messages | None:
    """Return the messages without the fix for KAFKA-16407: changes from and to null are dropped."""
    if not keys.had and not keys.has:
        return ()
    if (keys.had and keys.old is None) or (keys.has and keys.new is None):
        return None
    if not keys.had:
        return ((keys.new, ONLY_IF_PRESENT),)
    if not keys.has:
        return ((keys.old, DELETE_AND_PROPAGATE),)
    gone = ((keys.old, DELETE_QUIETLY),) if keys.moved else ()
    return (*gone, (keys.new, NULL_IF_MISSING))


_INSTRUCTIONS: Mapping[tuple[bool, bool], Callable[[_ForeignKeys], Messages | None]] = {
    (True, True): _left_instructions,
    (True, False): _left_instructions_before,
    (False, True): _inner_instructions,
    (False, False): _inner_instructions_before,
}
"""(is a left join, has the fixes for null foreign keys) → the messages for a change"""


def foreign_key_receive(behavior: ForeignKeyReceive, context: OperatorContext) -> Process:
    """`SubscriptionReceiveProcessorSupplier`: store the subscription, and forward it with the foreign key."""
    store = context.store(behavior.store, TimestampedKeyValueBytes)
    subscriptions = _Subscriptions(behavior.store, context)
    forward, task, name = context.forward, context.task, context.node.name

    def process(key: Value, message: Value, timestamp: int, headers: Headers) -> None:
        if key is None:
            if message.instruction != NULL_IF_MISSING:
                task.drop(name, "null foreign key")
                return
        else:
            store_key = subscriptions.store_key(key, message.key)
            if message.instruction in {DELETE_AND_PROPAGATE, DELETE_QUIETLY}:
                store.put(store_key, None)
            else:
                store.put(store_key, (subscriptions.message.serialize(message), timestamp))
        forward(key, message, timestamp, headers)

    return process


class _Subscriptions:
    """The keys of the subscription store: `length of the foreign key(4) ‖ foreign key ‖ left key`."""

    def __init__(self, store: str, context: OperatorContext) -> None:
        foreign, left = _key_formats(store, context)
        self._foreign = context.key_serde(foreign)
        self._left = context.key_serde(left)
        self.message = subscription_serde(self._left)

    def prefix(self, foreign_key: Value) -> bytes:
        written = self._foreign.serialize(foreign_key)
        return len(written).to_bytes(_LENGTH, "big") + written

    def store_key(self, foreign_key: Value, left_key: Value) -> bytes:
        return self.prefix(foreign_key) + self._left.serialize(left_key)


def _key_formats(store: str, context: OperatorContext) -> tuple[Format | None, Format | None]:
    """Return the formats of the foreign key and the left key."""
    keeps = next(kept.keeps for kept in context.task.program.stores if kept.name == store)
    return (None, None) if keeps is None else (keeps.format.key, keeps.format.value)


def foreign_key_answer(behavior: ForeignKeyAnswer, context: OperatorContext) -> Process:
    """`SubscriptionJoinProcessorSupplier`."""
    get = value_getter(behavior.table, context)
    forward = context.forward

    def process(key: Value, message: Value, timestamp: int, headers: Headers) -> None:
        found = None if key is None else get(key)
        value = None if found is None else found[0]
        instruction = message.instruction
        if instruction == DELETE_QUIETLY or (instruction == ONLY_IF_PRESENT and found is None):
            return
        if instruction == DELETE_AND_PROPAGATE:
            value = None
        time = timestamp if found is None else max(timestamp, found[1])
        forward(message.key, Response(message.hash, value, message.partition), time, headers)

    return process


def foreign_key_notify(behavior: ForeignKeyNotify, context: OperatorContext) -> Process:
    """`ForeignTableJoinProcessorSupplier`: respond in the order of the left keys' bytes."""
    store = context.store(behavior.store, TimestampedKeyValueBytes)
    subscriptions = _Subscriptions(behavior.store, context)
    deserialize = subscriptions.message.deserialize
    forward, task, name, versioned = context.forward, context.task, context.node.name, behavior.versioned

    def process(key: Value, change: Value, timestamp: int, headers: Headers) -> None:
        new, _, latest = change
        if key is None:
            task.drop(name, "null key")
            return
        if versioned and not latest:
            task.drop(name, "out of order")
            return
        for _, (written, _) in list(store.prefix_scan(subscriptions.prefix(key))):
            message = deserialize(written)
            forward(message.key, Response(message.hash, new, message.partition), timestamp, headers)

    return process


def foreign_key_resolve(behavior: ForeignKeyResolve, context: OperatorContext) -> Process:
    """`ResponseJoinProcessorSupplier`."""
    get = value_getter(behavior.table, context)
    serialize = context.value_serde(behavior.left.value).serialize
    joined: Callable[..., Value] = context.expression(behavior.value, "left", "right", "key")
    forward, task, name, is_left = context.forward, context.task, context.node.name, behavior.kind == "left"

    def process(key: Value, message: Value, timestamp: int, headers: Headers) -> None:
        found = get(key)
        hashed = None if found is None else murmur3_128(serialize(found[0]))
        if message.hash != hashed:
            task.drop(name, "outdated response")
            return
        left = None if found is None else found[0]
        if message.value is None and (not is_left or left is None):
            forward(key, None, timestamp, headers)
        else:
            forward(key, joined(left, message.value, key), timestamp, headers)

    return process


def foreign_key_result(behavior: ForeignKeyResult, context: OperatorContext) -> Process:
    return table_source(TableSource(behavior.store, behavior.sends_old), context)


FACTORIES: Mapping[type, OperatorFactory] = {
    ForeignKeySend: foreign_key_send,
    ForeignKeyReceive: foreign_key_receive,
    ForeignKeyAnswer: foreign_key_answer,
    ForeignKeyNotify: foreign_key_notify,
    ForeignKeyResolve: foreign_key_resolve,
    ForeignKeyResult: foreign_key_result,
}
