"""Behaviors of table processors."""

import attrs

from headwater.model.behaviors.formats import Format
from headwater.model.behaviors.views import TableView


@attrs.frozen
class TableSource:
    """`KTableSource`: `table`, `toTable`; without a `store` it forwards changes without old values."""

    store: str | None
    sends_old: bool = False


@attrs.frozen
class GlobalTableSource:
    """`KTableSource` of a global table, or with `processor_class` the processor of `addGlobalStore`."""

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
    """`KTableMapValues`: computes `value` from the new value, and from the old one if that is sent."""

    value: str | None
    parent: TableView
    store: str | None = None
    sends_old: bool = False


@attrs.frozen
class TableTransformValues:
    """`KTableTransformValues` with a class of the user, `module:Class`, that may access `stores`."""

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
    """`KTable#groupBy`: forwards old and new value with the keys that the selector returns.

    `key_format` is the format of these keys.
    """

    key: str | None
    value: str | None
    parent: TableView
    versioned: bool = False
    key_format: Format | None = None
    sends_both_values: bool = True
    """Whether an update that keeps its new key is one record (KIP-904); not with `upgrade.from` up to 3.4."""


@attrs.frozen
class TableSuppress:
    """`KTableSuppressProcessorSupplier`: buffers changes in `store` for a time or until the window closes."""

    store: str
    parent: TableView
    until_window_closes: bool
    wait_ms: int
    """Milliseconds: the time limit, or the grace after the window's end."""
    max_records: int | None = None
    max_bytes: int | None = None
    shut_down_when_full: bool = False
    """Shut down when a limit is reached; otherwise emit the oldest change early."""
