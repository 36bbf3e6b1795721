"""Records and clocks of a task. Records are plain tuples, since one is built per record on the hot path.

Keys and values are Python values (`str`, `int`, `float`, `bytes`, `bool`, `None`, `dict`, `list`,
`Windowed`); the engine never changes them in place. Timestamps are in milliseconds.
"""

from collections.abc import Mapping, MutableMapping
from typing import Any, NamedTuple

Value = Any
"""A key or a value, of the types above."""

TopicPartition = tuple[str, int]
"""(topic, partition)"""

Offsets = Mapping[TopicPartition, int]
"""Topic partition → offset."""

OffsetRanges = Mapping[TopicPartition, tuple[int, int]]
"""Topic partition → (first offset, offset after the last)."""

Commits = Mapping[TopicPartition, tuple[int, str]]
"""Topic partition → (next offset to read, text of the offset metadata)."""

Headers = tuple[tuple[str, bytes | None], ...]
"""Header names and values in order, duplicates included; `()` = no headers."""

InputRecord = tuple[str, int, int, int, bytes | None, bytes | None, Headers]
"""(topic, partition, offset, timestamp_ms, key, value, headers)"""

HeadRecord = tuple[str, int, int, int, Value, Value, Headers, InputRecord]
"""(topic, partition, offset, timestamp_ms, key, value, headers, input record).

An input record that was read when it became the head of its partition: key and value are deserialized, and
the timestamp is extracted.
"""

OutputRecord = tuple[str, int | None, bytes | None, bytes | None, int, Headers]
"""(topic, partition, key, value, timestamp_ms, headers); partition None = the default partitioner."""

Change = tuple[Value, Value, bool]
"""(new, old, is_latest): a change of a table, which table nodes receive and forward as the value.

`is_latest` is False for an out-of-order update of a versioned table.
"""


class Windowed(NamedTuple):
    """A key within a window (`Windowed`); `end` is exclusive for time windows, inclusive for sessions."""

    key: Value
    start: int
    end: int


class ValueAndTimestamp(NamedTuple):
    """An entry of a timestamped store (`ValueAndTimestamp`); stores return None if there is no entry."""

    value: Value
    timestamp: int


Context = tuple[int, Headers, InputRecord]
"""(timestamp, headers, input record) of the record that a node processes.

The timestamp may differ from the input record's.
"""

NO_RECORD: InputRecord = ("", -1, -1, -1, None, None, ())


class CurrentRecord:
    """The input record that the task is processing; expressions and processors read its metadata here.

    `context` is set while a user's code runs: writes to stores are logged with it.
    """

    __slots__ = ("context", "record")

    def __init__(self) -> None:
        self.record: InputRecord = NO_RECORD
        self.context: Context | None = None

    def write_context(self) -> Context:
        """Return the context with which a write to a store is logged."""
        return self.context or (self.record[3], self.record[6], self.record)


UNSET = -1


class Clock:
    """A time in milliseconds, or a counter, of a task, a store or an operator; -1 = not set yet.

    Owners change `now` directly: a clock is read and set for each record.
    """

    __slots__ = ("now",)

    def __init__(self, now: int = UNSET) -> None:
        self.now = now


class Clocks:
    """The clocks of one task by name. `metadata` has their values as of the last committed batch."""

    def __init__(self, metadata: MutableMapping[str, int]) -> None:
        self._metadata = metadata
        self._clocks: dict[str, Clock] = {}

    def clock(self, name: str) -> Clock:
        """Return the clock of this name, always the same object."""
        known = self._clocks.get(name)
        if known is None:
            known = self._clocks[name] = Clock(self._metadata.get(name, UNSET))
        return known

    def save(self) -> None:
        """Write the clocks to the metadata, without those never set: offset metadata has a size limit."""
        self._metadata.update((name, clock.now) for name, clock in self._clocks.items() if clock.now != UNSET)
