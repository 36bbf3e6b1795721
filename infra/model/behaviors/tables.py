"""What is done to the changes of a table."""

import attrs

from infra.model.behaviors.views import TableView


@attrs.frozen
class TableSource:
    """`KTableSource`: `table`, `toTable`; `store` None = not materialized (forwards without an old value)."""

    store: str | None
    sends_old: bool = False


@attrs.frozen
class GlobalTableSource:
    """`KTableSource` of a global table, or the restoring of `addGlobalStore` (then `processor_class`)."""

    store: str
    processor_class: str | None = None


@attrs.frozen
class TableFilter:
    """`KTableFilter`: a value that does not pass counts as null."""

    where: str | None
    negate: bool
    parent: TableView
    store: str | None = None
    sends_old: bool = False
    versioned: bool = False


@attrs.frozen
class TableMapValues:
    """`KTableMapValues`: `value` is computed of the new value, and of the old one where it is sent."""

    value: str | None
    parent: TableView
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableTransformValues:
    """`KTableTransformValues`: a class of the user's, `module:Class`; `stores` are those it may use."""

    processor_class: str | None
    parent: TableView
    stores: tuple[str, ...] = ()
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableToStream:
    """Forwards the new value of each change."""


@attrs.frozen
class TableRepartitionMap:
    """`KTable#groupBy`: old and new value go on under the keys that the selector gives them."""

    key: str | None
    value: str | None
    parent: TableView
    versioned: bool = False


@attrs.frozen
class TableSuppress:
    """`KTableSuppressProcessorSupplier`: changes wait in `store` for a time or for their window's end."""

    store: str
    parent: TableView
    until_window_closes: bool
    wait_ms: int
    """The time limit, or the grace after a window's end."""
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    """Otherwise the oldest is emitted early. A limit is a limit of either."""
