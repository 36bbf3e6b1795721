"""Formats of keys and values, settings of sources, sinks and stores, and views of tables."""

from typing import Literal

import attrs

DEFAULT_FORMAT = "default"


@attrs.frozen
class Format:
    """A serde by name (`DEFAULT_FORMAT` = the application's); `window` set = a windowed key over it.

    `size_ms` is the window's length in milliseconds; None = unknown (time) or part of the key (session).
    """

    name: str
    window: Literal["time", "session"] | None = None
    size_ms: int | None = None


@attrs.frozen
class RecordFormat:
    """The formats of key and value.

    None = the application's default (`default.key.serde`, `default.value.serde`, otherwise string).
    """

    key: Format | None = None
    value: Format | None = None


DEFAULT_RECORD_FORMAT = RecordFormat()
ForeignKeyMessage = Literal["subscription", "response"]
"""The message type of a foreign-key join's internal topic.

The format of a subscription has the foreign key as key and the left table's key as value (both default to the
default key format). The format of a response has the left table's key and the right table's value.
"""


@attrs.frozen
class SourceSettings:
    """How a source node reads records.

    `timestamp` is an expression for the record's timestamp in milliseconds (`TimestampExtractor`).
    """

    format: RecordFormat
    offset_reset: str | None = None
    timestamp: str | None = None
    carries_changes: bool = False
    """A repartition topic of `KTable#groupBy`: values contain old and new value (`ChangedSerializer`)."""
    foreign_key: ForeignKeyMessage | None = None


@attrs.frozen
class SinkSettings:
    """How a sink node writes records."""

    format: RecordFormat
    partitioner: str | None = None
    topic_expression: str | None = None
    """An expression for the topic name (`TopicNameExtractor`)."""
    carries_changes: bool = False
    foreign_key: ForeignKeyMessage | None = None


@attrs.frozen
class StoreSettings:
    """How the runtime opens a store; durations are milliseconds.

    `format.key` of window and session stores is the key without the window. A `list` store has the values of
    both sides of a stream-stream join: `format` is the left side's, `right` the right side's. A
    `subscription` store has the foreign key (`format.key`) and the left table's key (`format.value`) as key.
    """

    kind: Literal[
        "keyValue", "timestampedKeyValue", "versionedKeyValue", "window", "timestampedWindow", "session",
        "list", "suppress", "subscription", "joinBuffer",
    ]  # fmt: skip
    format: RecordFormat
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    caching: bool = False
    """The store's builder adds a record cache, if the application has one."""
    in_memory: bool | None = None
    """None = as the application's config decides (`default.dsl.store`, `dsl.store.suppliers.class`)."""
    without_timestamps: bool = False
    """The store has no timestamps (supplier of a plain store on disk): Kafka Streams reads -1."""
    ordered_by_key: bool = False
    """Closed windows are emitted by segment and key instead of by time (supplier of a store on disk)."""
    right: RecordFormat | None = None
    logs_headers: bool = False
    """Changelog records have the headers of the record that caused them (since Kafka Streams 4.3)."""
    keyed_by_record: bool = False
    """The user declares that keys are keys of input records: entries of the store can move (KIP-287)."""


JoinKind = Literal["inner", "left", "outer"]


@attrs.frozen
class StoreView:
    """The values are in a state store (`KTableMaterializedValueGetterSupplier`)."""

    store: str


@attrs.frozen
class FilteredView:
    """The getter of `KTableFilter` without a store."""

    parent: "TableView"
    where: str | None
    negate: bool = False


@attrs.frozen
class MappedView:
    """The getter of `KTableMapValues` without a store."""

    parent: "TableView"
    value: str | None


@attrs.frozen
class JoinedView:
    """The getter of a table-table join without a store."""

    kind: JoinKind
    left: "TableView"
    right: "TableView"
    value: str | None


@attrs.frozen
class TransformedView:
    """The getter of `KTableTransformValues`: it calls the transformer of `node` for each read."""

    parent: "TableView"
    node: str


@attrs.frozen
class SuppressedView:
    """The getter of `KTableSuppressProcessorSupplier`: a value buffered in `store`, else the parent's."""

    parent: "TableView"
    store: str


TableView = StoreView | FilteredView | MappedView | JoinedView | TransformedView | SuppressedView
