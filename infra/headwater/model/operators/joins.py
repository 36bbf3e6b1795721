"""Joins. The types of both handles decide which of the five joins it is and which options are valid."""

from collections.abc import Mapping
from enum import Enum

import attrs

from headwater.model.behaviors import JoinKind
from headwater.model.stores import Logging, Materialized, Serdes, StoreSupplier
from headwater.model.windows import JoinWindow


class JoinType(Enum):
    """The call, as the DSL spells it."""

    INNER = "join"
    LEFT = "leftJoin"
    OUTER = "outerJoin"

    @property
    def kind(self) -> JoinKind:
        """Return the kind of join that the call's processors make."""
        return _KINDS[self]


_KINDS: Mapping[JoinType, JoinKind] = {
    JoinType.INNER: "inner",
    JoinType.LEFT: "left",
    JoinType.OUTER: "outer",
}


@attrs.frozen
class Join:
    """`join`/`leftJoin`/`outerJoin` with the handle `other`.

    stream-stream: `window`, and `StreamJoined`'s `name`, `store_name`, `this_supplier`, `other_supplier`,
    `logging`. stream-table: `Joined`'s `name` and `grace_ms`. stream-global: `key` and `Named` `name`.
    table-table: `name`, `materialized`. Foreign key: `foreign_key` set, `TableJoined`'s `name`,
    `materialized`.
    """

    type: JoinType
    other: str
    name: str | None = None
    window: JoinWindow | None = None
    store_name: str | None = None
    this_supplier: StoreSupplier | None = None
    other_supplier: StoreSupplier | None = None
    logging: Logging | None = None
    grace_ms: int | None = None
    is_foreign_key: bool = False
    foreign_key: str | None = None
    key: str | None = None
    value: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None
