"""What bytes mean where records enter, leave or are kept."""

from typing import Literal

import attrs

DEFAULT_FORMAT = "default"


@attrs.frozen
class Format:
    """A serde by name (`DEFAULT_FORMAT` = the application's); `window` set = a windowed key over it.

    `size_ms` None = the size is not known (time) or lies in the key (session).
    """

    name: str
    window: Literal["time", "session"] | None = None
    size_ms: int | None = None


@attrs.frozen
class RecordFormat:
    """None = the application's default (`default.key.serde`, `default.value.serde`; without them: string)."""

    key: Format | None = None
    value: Format | None = None


DEFAULT_RECORD_FORMAT = RecordFormat()


ForeignKeyMessage = Literal["subscription", "response"]
"""Of a subscription the format's key is the foreign key's and its value the left key's (both default to the
keys' default); of a response the key is the left key's and the value the right value's."""


@attrs.frozen
class SourceSettings:
    """What a source node needs to read. `timestamp` is an expression for the record's time (milliseconds)."""

    format: RecordFormat
    offset_reset: str | None = None
    timestamp: str | None = None
    carries_changes: bool = False
    """A repartition topic of `KTable#groupBy`: values carry old and new (`ChangedSerializer`)."""
    foreign_key: ForeignKeyMessage | None = None


@attrs.frozen
class SinkSettings:
    """What a sink node needs to write."""

    format: RecordFormat
    partitioner: str | None = None
    extractor: str | None = None
    """An expression for the topic's name."""
    carries_changes: bool = False
    foreign_key: ForeignKeyMessage | None = None


@attrs.frozen
class StoreSettings:
    """What a store needs to be opened.

    Keys of window and session stores are plain here, the store adds the window. A `list` keeps the values of
    both sides of a stream-stream join: `format` is the left one's, `right` the right one's. A `subscription`
    is kept by foreign key (`format.key`) and left key (`format.value`).
    """

    kind: Literal[
        "keyValue", "timestampedKeyValue", "versionedKeyValue", "window", "timestampedWindow", "session",
        "list", "suppress", "subscription", "joinBuffer",
    ]  # fmt: skip
    format: RecordFormat
    retention_ms: int | None = None
    window_size_ms: int | None = None
    retain_duplicates: bool = False
    caching: bool | None = None
    in_memory: bool = False
    without_timestamps: bool = False
    """On disk values have no timestamp: a supplier of plain stores, where Kafka Streams reads -1."""
    ordered_by_key: bool = False
    """Closed windows come by segment and key, not by time: a supplier of stores on disk."""
    right: RecordFormat | None = None
