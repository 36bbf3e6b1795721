"""Behaviors of the processors of a foreign-key join (KIP-213), in the order of its messages."""

import attrs

from headwater.model.behaviors.formats import RecordFormat
from headwater.model.behaviors.views import JoinKind, TableView


@attrs.frozen
class ForeignKeySend:
    """`SubscriptionSendProcessorSupplier`: sends subscriptions of the left table's keys to the right table.

    The message contains a hash of the left value, serialized with `left`. Foreign keys are compared by their
    bytes, serialized with `foreign`.
    """

    kind: JoinKind
    foreign_key: str | None
    left: RecordFormat
    foreign: RecordFormat
    versioned: bool = False
    has_null_fixes: bool = True
    """Whether KAFKA-16394 and KAFKA-16407 are fixed: fewer nulls in results, and no lost changes."""


@attrs.frozen
class ForeignKeyReceive:
    """`SubscriptionReceiveProcessorSupplier`: stores the subscription."""

    store: str


@attrs.frozen
class ForeignKeyAnswer:
    """`SubscriptionJoinProcessorSupplier`: answers a new subscription with the right table's value."""

    table: TableView


@attrs.frozen
class ForeignKeyNotify:
    """`ForeignTableJoinProcessorSupplier`: sends a change of the right table to all its subscriptions."""

    store: str
    versioned: bool = False


@attrs.frozen
class ForeignKeyResolve:
    """`ResponseJoinProcessorSupplier`: joins the response if the left value is still the subscribed one."""

    kind: JoinKind
    value: str | None
    table: TableView
    left: RecordFormat


@attrs.frozen
class ForeignKeyResult:
    """The result's `KTableSource`."""

    store: str | None
    sends_old: bool = False
