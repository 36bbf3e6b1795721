"""Topics of `TopologyTestDriver`: they write and read records with their own time, formats and position.

They have the methods of `org.apache.kafka.streams.TestInputTopic` and `TestOutputTopic` in snake case; where
Java overloads a name, the names differ.
"""

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, final

from headwater_spark.engine.records import OutputRecord, Value
from headwater_spark.processors import Record

Headers = Iterable[tuple[str, bytes | None]]
Pipe = Callable[[Value, Value, int, Headers], None]
"""Processes a record: key, value, timestamp, headers."""


@final
class TestInputTopic:
    """A topic of the topology, with its own time. `TopologyTestDriver.create_input_topic` creates it.

    A record without a timestamp has the time of this topic, which then advances by `auto_advance`. A record
    with a timestamp does not change it. All times are in milliseconds. The methods raise what
    `TopologyTestDriver.pipe` raises.
    """

    __test__ = False  # pytest collects no tests from it

    def __init__(self, topic: str, pipe: Pipe, start_timestamp: int, auto_advance: int) -> None:
        _check_not_negative("start_timestamp", start_timestamp)
        _check_not_negative("auto_advance", auto_advance)
        self.topic = topic
        self._pipe = pipe
        self._now = start_timestamp
        self._auto_advance = auto_advance

    def advance_time(self, milliseconds: int) -> None:
        """Advance the time of this topic.

        Raises:
            ValueError: `milliseconds` is negative.
        """
        _check_not_negative("milliseconds", milliseconds)
        self._now += milliseconds

    def pipe_input(
        self, key: Value, value: Value, timestamp: int | None = None, headers: Headers = ()
    ) -> None:
        """Process a record, and all records that follow from it."""
        if timestamp is None:
            timestamp, self._now = self._now, self._now + self._auto_advance
        self._pipe(key, value, timestamp, headers)

    def pipe_value(self, value: Value, timestamp: int | None = None) -> None:
        """Process a record without a key."""
        self.pipe_input(None, value, timestamp)

    def pipe_record(self, record: Record) -> None:
        """Process a record, with its timestamp and headers."""
        self.pipe_input(record.key, record.value, record.timestamp, record.headers)

    def pipe_record_list(self, records: Iterable[Record]) -> None:
        for record in records:
            self.pipe_record(record)

    def pipe_key_value_list(
        self, pairs: Iterable[tuple[Value, Value]], start_timestamp: int | None = None, advance: int = 0
    ) -> None:
        """Process records, the first with `start_timestamp`, each later one `advance` milliseconds after it.

        Without `start_timestamp`, they have the time of this topic.
        """
        timestamp = start_timestamp
        for key, value in pairs:
            self.pipe_input(key, value, timestamp)
            timestamp = None if timestamp is None else timestamp + advance

    def pipe_value_list(
        self, values: Iterable[Value], start_timestamp: int | None = None, advance: int = 0
    ) -> None:
        """Process records without keys, with the timestamps of `pipe_key_value_list`."""
        self.pipe_key_value_list(((None, value) for value in values), start_timestamp, advance)

    def __repr__(self) -> str:
        return f"TestInputTopic(topic={self.topic!r})"


@final
class TestOutputTopic:
    """The records that the topology writes to a topic. `TopologyTestDriver.create_output_topic` creates it.

    A record is read once, by any reader of the topic: they share `unread`. A record that is not valid in its
    format raises `DeserializationError`, and can be read again.
    """

    __test__ = False

    def __init__(
        self,
        topic: str,
        unread: Callable[[], deque[OutputRecord]],
        to_record: Callable[[OutputRecord], Record],
    ) -> None:
        self.topic = topic
        self._unread = unread
        self._to_record = to_record

    @property
    def queue_size(self) -> int:
        """The number of records that can be read."""
        return len(self._unread())

    @property
    def is_empty(self) -> bool:
        return self.queue_size == 0

    def read_record(self) -> Record:
        """Return the next record.

        Raises:
            LookupError: There is none.
        """
        unread = self._unread()
        if not unread:
            raise LookupError(f"{self.topic} has no record that was not read")
        record = self._to_record(unread[0])
        unread.popleft()
        return record

    def read_value(self) -> Value:
        """Return the value of the next record; raises as `read_record`."""
        return self.read_record().value

    def read_key_value(self) -> tuple[Value, Value]:
        """Return key and value of the next record; raises as `read_record`."""
        record = self.read_record()
        return record.key, record.value

    def read_records_to_list(self) -> list[Record]:
        """Return all records that were not read, in their order."""
        return [self.read_record() for _ in range(self.queue_size)]

    def read_values_to_list(self) -> list[Value]:
        return [record.value for record in self.read_records_to_list()]

    def read_key_values_to_list(self) -> list[tuple[Value, Value]]:
        return [(record.key, record.value) for record in self.read_records_to_list()]

    def read_key_values_to_map(self) -> dict[Any, Value]:
        """Return the latest value of each key, in the order of the first record of each.

        Raises:
            ValueError: A record has no key. It and the records before it are read then.
            TypeError: A key is, or a windowed key has, an object or an array: no key of a `dict`.
        """
        found: dict[Any, Value] = {}
        while not self.is_empty:
            key, value = self.read_key_value()
            if key is None:
                raise ValueError(f"a record of {self.topic} has no key: use read_key_values_to_list")
            try:
                found[key] = value
            except TypeError:
                raise TypeError(
                    f"a key of {self.topic} is no key of a dict, but {key!r}: use read_key_values_to_list"
                ) from None
        return found

    def __repr__(self) -> str:
        return f"TestOutputTopic(topic={self.topic!r}, queue_size={self.queue_size})"


def _check_not_negative(name: str, milliseconds: int) -> None:
    if milliseconds < 0:
        raise ValueError(f"{name} is negative: {milliseconds}")
