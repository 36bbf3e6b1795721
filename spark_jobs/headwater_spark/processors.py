"""The Processor API, for processing that operators cannot express. Follows `api.Processor`.

    from headwater_spark.processors import Processor, PunctuationType, Record

    class Scorer(Processor):
        def init(self, context):
            self.context = context
            self.scores = context.state_store("scores")
            context.schedule(60_000, PunctuationType.STREAM_TIME, self.report)

        def process(self, record):
            score = (self.scores.get(record.key) or 0) + record.value["points"]
            self.scores.put(record.key, score)

        def report(self, timestamp):
            for key, score in self.scores.all():
                self.context.forward(Record(key, score, timestamp))

A document names the class `module:Scorer` (`process`, `processValues`, `addProcessor`, `addGlobalStore`). A
function without state is enough where no store is needed: `module:add_country` of

    def add_country(record):
        return record.with_value({**record.value, "country": "FR"})

Each task has an instance. A task that moves to another worker creates a new one, so keep state in stores.
Never change a value of a record or store in place.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import attrs

from headwater_spark.engine.records import Headers, Value, ValueAndTimestamp, Windowed
from headwater_spark.engine.stores.interfaces import (
    KeyValueStore,
    SessionStore,
    TimestampedKeyValueStore,
    VersionedKeyValueStore,
    WindowStore,
)

__all__ = [
    "Cancellable",
    "FixedKeyProcessor",
    "FunctionProcessor",
    "Headers",
    "KeyValueStore",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "SessionStore",
    "TimestampedKeyValueStore",
    "Value",
    "ValueAndTimestamp",
    "ValueTransformer",
    "VersionedKeyValueStore",
    "WindowStore",
    "Windowed",
]


@attrs.frozen
class Record:
    """A record. `timestamp` is in milliseconds, `headers` are pairs of name and bytes."""

    key: Value
    value: Value
    timestamp: int
    headers: Headers = ()

    def with_key(self, key: Value) -> "Record":
        return Record(key, self.value, self.timestamp, self.headers)

    def with_value(self, value: Value) -> "Record":
        return Record(self.key, value, self.timestamp, self.headers)

    def with_timestamp(self, timestamp: int) -> "Record":
        return Record(self.key, self.value, timestamp, self.headers)

    def with_headers(self, headers: Headers) -> "Record":
        return Record(self.key, self.value, self.timestamp, headers)


@attrs.frozen
class RecordMetadata:
    """Topic, partition and offset of the current input record."""

    topic: str
    partition: int
    offset: int


class PunctuationType(Enum):
    """The time that a punctuation follows."""

    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


class Cancellable(Protocol):
    """A scheduled punctuation (`Cancellable` in Kafka Streams)."""

    def cancel(self) -> None: ...


class ProcessorContext(Protocol):
    """What a processor uses of its task."""

    @property
    def application_id(self) -> str: ...
    @property
    def task_id(self) -> str:
        """The id of the task: `<sub-topology>_<partition>`."""
        ...

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """The metadata of the current input record; None in a punctuation."""
        ...

    def forward(self, record: Record, child: str | None = None) -> None:
        """Forward a record to all children, or to the child of that name.

        Raises:
            ValueError: There is no such child, or a `processValues` changes the key.
        """
        ...

    def state_store(self, name: str) -> Value:
        """Return a connected store or a global store.

        Its kind decides which methods it has: `KeyValueStore`, `TimestampedKeyValueStore`,
        `VersionedKeyValueStore`, `WindowStore` or `SessionStore`.

        Raises:
            KeyError: The processor is not connected to such a store.
        """
        ...

    def schedule(
        self,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
    ) -> Cancellable:
        """Call `callback(timestamp)` each time that the interval (in milliseconds) has passed.

        Stream time starts at 0, wall-clock time at the first call in `init`. Wall-clock time is constant
        within a batch. Schedules are identified by their order in `init`, also after a restart.

        Raises:
            ValueError: The interval is shorter than 1 ms.
        """
        ...

    def current_stream_time_ms(self) -> int:
        """Return the largest timestamp of the task's input, in milliseconds; -1 = no record yet."""
        ...

    def current_system_time_ms(self) -> int:
        """Return the wall-clock time of the batch, in milliseconds."""
        ...


class Processor:
    """The base of users' processors. `close` is not called if the process of the task dies."""

    def init(self, context: ProcessorContext) -> None:
        """Called once, before the first record."""

    def process(self, record: Record) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task is closed. An error is logged, and fails nothing."""


class FixedKeyProcessor(Processor):
    """A processor for `processValues`: it must not change the key of a record."""


class FunctionProcessor(Processor):
    """Calls a function of the user for each record, where a document names a function instead of a class.

    In `process` and `processValues` the function takes a `Record`, and returns what is forwarded: a record,
    several ones, or None. In `transformValues` it takes key and value, and returns the new value.
    """

    def __init__(self, function: Callable[..., Value]) -> None:
        self._function = function

    def init(self, context: ProcessorContext) -> None:
        self._context = context

    def process(self, record: Record) -> None:
        result = self._function(record)
        if isinstance(result, Record):
            self._context.forward(result)
        elif result is not None:
            for each in result:
                self._context.forward(each)

    def transform(self, key: Value, value: Value) -> Value:
        return self._function(key, value)


class ValueTransformer:
    """A transformer for `transformValues` of a table; it cannot forward records."""

    def init(self, context: ProcessorContext) -> None:
        """Called once, before the first value."""

    def transform(self, key: Value, value: Value) -> Value:
        """Return the new value; None = delete the row. `value` is None for deletions."""
        raise NotImplementedError

    def close(self) -> None:
        """Called when the task is closed."""
