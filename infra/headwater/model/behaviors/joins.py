"""Behaviors of joins of streams and of tables, except foreign-key joins."""

import attrs

from headwater.model.behaviors.views import JoinKind, TableView
from headwater.model.windows import JoinWindow


@attrs.frozen
class JoinWindowed:
    """`KStreamJoinWindow`: puts the record into the window store of its side and forwards it."""

    store: str


@attrs.frozen
class StreamStreamJoin:
    """`KStreamKStreamJoinLeftSide`, `KStreamKStreamJoinRightSide`: joins with the other side's window store.

    `window` is that of the left side. `shared` is the store of records without a join result so far, of left
    and outer joins whose window is not eager.
    """

    kind: JoinKind
    is_left: bool
    window: JoinWindow
    value: str | None
    own_store: str
    other_store: str
    shared: str | None = None
    closes_by_own_side: bool = True
    """Whether a record waits until the window of its own side closes (KAFKA-15417).

    Before, it waited until that of the side closes that receives a record.
    """


@attrs.frozen
class StreamSelfJoin:
    """`KStreamKStreamSelfJoin`."""

    window: JoinWindow
    value: str | None
    store: str


@attrs.frozen
class StreamTableJoin:
    """`KStreamKTableJoin`; with `grace_ms`, records are buffered in the store `buffer` (versioned tables)."""

    kind: JoinKind
    value: str | None
    table: TableView
    grace_ms: int | None = None
    buffer: str | None = None


@attrs.frozen
class StreamGlobalJoin:
    """`KStreamGlobalKTableJoin`; `key` is the expression for the global table's key."""

    kind: JoinKind
    key: str | None
    value: str | None
    store: str
    forwards_null_table_keys: bool = True
    """Whether KAFKA-19208 is fixed: a left join keeps records whose key for the global table is null."""


@attrs.frozen
class TableTableJoin:
    """One side of a table-table join: it receives changes of `own` and reads values of `other`."""

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
