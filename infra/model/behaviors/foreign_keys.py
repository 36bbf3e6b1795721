"""The five processors of a foreign-key join, in the order of its messages, and its result (KIP-213)."""

import attrs

from infra.model.behaviors.formats import RecordFormat
from infra.model.behaviors.views import JoinKind, TableView


@attrs.frozen
class ForeignKeySend:
    """`SubscriptionSendProcessorSupplier`: tells the foreign side which keys of the left table want what.

    The message holds a hash of the left value as `left` writes it; equal foreign keys are told by the bytes
    of `foreign`.
    """

    kind: JoinKind
    foreign_key: str | None
    left: RecordFormat
    foreign: RecordFormat
    versioned: bool = False


@attrs.frozen
class ForeignKeyReceive:
    """`SubscriptionReceiveProcessorSupplier`: keeps the subscription."""

    store: str


@attrs.frozen
class ForeignKeyAnswer:
    """`SubscriptionJoinProcessorSupplier`: answers a new subscription with the right table's value."""

    table: TableView


@attrs.frozen
class ForeignKeyNotify:
    """`ForeignTableJoinProcessorSupplier`: a change of the right table answers all its subscriptions."""

    store: str
    versioned: bool = False


@attrs.frozen
class ForeignKeyResolve:
    """`ResponseJoinProcessorSupplier`: joins the answer if the left value is still the one that asked."""

    kind: JoinKind
    value: str | None
    table: TableView
    left: RecordFormat


@attrs.frozen
class ForeignKeyResult:
    """The result's `KTableSource`."""

    store: str | None
    sends_old: bool = False
