"""Records on their way through a task. They are plain tuples: one is built for each record of the hot path.

Types of the engine: keys and values are Python values (`str`, `int`, `float`, `bytes`, `bool`, `None`,
`dict`, `list`, `Windowed`); they are never changed in place. Timestamps are milliseconds.
"""

from typing import Any, NamedTuple

Value = Any
"""A key or a value, of the types above."""

Headers = tuple[tuple[str, bytes | None], ...]
"""In order, duplicates kept; `()` = none."""

InputRecord = tuple[str, int, int, int, bytes | None, bytes | None, Headers]
"""(topic, partition, offset, timestamp_ms, key, value, headers)"""

OutputRecord = tuple[str, int | None, bytes | None, bytes | None, int, Headers]
"""(topic, partition, key, value, timestamp_ms, headers); partition None = the default partitioner."""

Change = tuple[Value, Value, bool]
"""(new, old, is_latest) of a table; `is_latest` False = out of order (versioned tables). Tables' nodes get
and forward these as values."""


class Windowed(NamedTuple):
    """A key within a window, `end` exclusive for time windows, inclusive for sessions (KS `Windowed`)."""

    key: Value
    start: int
    end: int


class ValueAndTimestamp(NamedTuple):
    """What timestamped stores give to users; `None` in its place where nothing is stored."""

    value: Value
    timestamp: int


Context = tuple[int, Headers, InputRecord]
"""(timestamp, headers, input record) of what a node works on; the timestamp may differ from the input's."""

NO_RECORD: InputRecord = ("", -1, -1, -1, None, None, ())


class Ambient:
    """The input record being worked on, for what an expression or a processor asks beyond key and value.

    `node` is set while a user's code runs: what its store writes are logged with.
    """

    __slots__ = ("node", "record")

    def __init__(self) -> None:
        self.record: InputRecord = NO_RECORD
        self.node: Context | None = None

    def context(self) -> Context:
        """What a write to a store is logged with."""
        return self.node or (self.record[3], self.record[6], self.record)
