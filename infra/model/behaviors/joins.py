"""Joins of streams and of tables, but for those by a foreign key."""

import attrs

from infra.model.behaviors.views import JoinKind, TableView
from infra.model.windows import JoinWindow


@attrs.frozen
class JoinWindowed:
    """`KStreamJoinWindow`: puts the record into its side's window store and forwards it."""

    store: str


@attrs.frozen
class StreamStreamJoin:
    """`KStreamKStreamJoinLeftSide`/`RightSide`: looks for partners in the other side's store.

    `window` is seen from the left side. `shared` is the list store of records that wait for a partner.
    """

    kind: JoinKind
    is_left: bool
    window: JoinWindow
    value: str | None
    own_store: str
    other_store: str
    shared: str | None = None


@attrs.frozen
class StreamSelfJoin:
    """`KStreamKStreamSelfJoin`."""

    window: JoinWindow
    value: str | None
    store: str


@attrs.frozen
class StreamTableJoin:
    """`KStreamKTableJoin`; `grace_ms` set = records wait in the buffer store `buffer` (versioned tables)."""

    kind: JoinKind
    value: str | None
    table: TableView
    grace_ms: int | None = None
    buffer: str | None = None


@attrs.frozen
class StreamGlobalJoin:
    """`KStreamGlobalKTableJoin`: `key` is the global table's, made of the record."""

    kind: JoinKind
    key: str | None
    value: str | None
    store: str


@attrs.frozen
class TableTableJoin:
    """One side of a table-table join: `own` is the side it hears from, `other` the one it looks into."""

    kind: JoinKind
    is_left: bool
    value: str | None
    own: TableView
    other: TableView
    sends_old: bool = False
    versioned: bool = False


@attrs.frozen
class TableJoinMerge:
    """`KTableKTableJoinMerger`."""

    store: str | None = None
    sends_old: bool = False
