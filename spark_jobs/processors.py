"""The Processor API: what users write where the operators do not suffice.

    from spark_jobs.processors import Processor, PunctuationType, Record

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

A document names it `module:Scorer` (`process`, `processValues`, `addProcessor`, `addGlobalStore`). Each task
has an instance, made anew whenever the task moves to another worker: what must last belongs in stores.
What a class takes out of a store or a record must not be changed in place. Follows `api.Processor`.
"""

from collections.abc import Callable
from enum import Enum
from typing import Protocol

import attrs

from spark_jobs.runtime.engine.records import Headers, Value, ValueAndTimestamp

__all__ = [
    "Cancellable",
    "FixedKeyProcessor",
    "Headers",
    "Processor",
    "ProcessorContext",
    "PunctuationType",
    "Record",
    "RecordMetadata",
    "Value",
    "ValueAndTimestamp",
    "ValueTransformer",
]


@attrs.frozen
class Record:
    """A record: timestamp in milliseconds, headers as pairs of name and bytes."""

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
    """Where the input record lies that is being worked on."""

    topic: str
    partition: int
    offset: int


class PunctuationType(Enum):
    """What moves a schedule on."""

    STREAM_TIME = "stream-time"
    WALL_CLOCK_TIME = "wall-clock-time"


class Cancellable(Protocol):
    def cancel(self) -> None: ...


class ProcessorContext(Protocol):
    """What a processor may ask of its task."""

    @property
    def application_id(self) -> str: ...
    @property
    def task_id(self) -> str:
        """`<sub-topology>_<partition>`."""
        ...

    @property
    def record_metadata(self) -> RecordMetadata | None:
        """None within a punctuation."""
        ...

    def forward(self, record: Record, child: str | None = None) -> None:
        """To all children, or to the one of that name. Raises ValueError for an unknown name."""
        ...

    def state_store(self, name: str) -> Value:
        """A connected store, or any global one. Raises KeyError for another."""
        ...

    def schedule(
        self,
        interval_ms: int,
        kind: PunctuationType,
        callback: Callable[[int], None],
    ) -> Cancellable:
        """Has `callback(timestamp)` called when so much time has passed.

        Stream time counts from 0, wall-clock time from the first call in `init`; it passes from batch to
        batch. Schedules are told apart by their order within `init`.
        """
        ...

    def current_stream_time_ms(self) -> int: ...
    def current_system_time_ms(self) -> int: ...


class Processor:
    """Override what is needed. `close` is called when a task ends in good order, which is not promised."""

    def init(self, context: ProcessorContext) -> None:
        """Called once, before the first record."""

    def process(self, record: Record) -> None:
        raise NotImplementedError

    def close(self) -> None:
        """Called at the end."""


class FixedKeyProcessor(Processor):
    """For `processValues`: what is forwarded must keep its key."""


class ValueTransformer:
    """For `transformValues` of a table; it cannot forward."""

    def init(self, context: ProcessorContext) -> None:
        """Called once, before the first value."""

    def transform(self, key: Value, value: Value) -> Value:
        """The new value; None deletes. `value` is None for deletions."""
        raise NotImplementedError

    def close(self) -> None:
        """Called at the end."""
