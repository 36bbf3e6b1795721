"""Users' processors with stores of each kind and punctuations, for applications that get more processors.

Their results do not depend on how keys are distributed: a window is reported when its end has passed.
"""

from headwater_spark.engine.records import Windowed
from headwater_spark.processors import Processor, ProcessorContext, PunctuationType, Record, ValueTransformer

WINDOW_MS = 10
_GAP_MS = 8


class Visits(Processor):
    """Counts the records of each key in total, by window, and since the last report (`Reports`)."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._totals = context.state_store("visit-totals")
        self._windows = context.state_store("visit-windows")
        self._pending = context.state_store("visit-pending")
        context.schedule(WINDOW_MS, PunctuationType.STREAM_TIME, self._report_closed)

    def process(self, record: Record) -> None:
        total = (self._totals.get(record.key) or 0) + 1
        self._totals.put(record.key, total)
        start = record.timestamp // WINDOW_MS * WINDOW_MS
        self._windows.put(record.key, (self._windows.fetch(record.key, start) or 0) + 1, start)
        pending, _ = self._pending.get(record.key) or (0, 0)
        self._pending.put(record.key, (pending + 1, record.timestamp))
        self._context.forward(record.with_value(f"total {total}"))

    def _report_closed(self, timestamp: int) -> None:
        for window, count in list(self._windows.all()):
            if window.start + WINDOW_MS <= timestamp:
                self._windows.put(window.key, None, window.start)
                self._context.forward(Record(window.key, f"window {window.start} {count}", timestamp))


class Reports(Processor):
    """Reports, on the wall clock, how many records of each key `Visits` has counted since the last report."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._pending = context.state_store("visit-pending")
        context.schedule(100, PunctuationType.WALL_CLOCK_TIME, self._report)

    def process(self, record: Record) -> None:
        """Process nothing: `Visits` counts."""

    def _report(self, timestamp: int) -> None:
        for key, (count, _) in list(self._pending.all()):
            self._pending.delete(key)
            self._context.forward(Record(key, f"new {count}", timestamp))


class Histories(Processor):
    """Forwards the length of a key's session, and its value 20 ms ago."""

    def init(self, context: ProcessorContext) -> None:
        self._context = context
        self._sessions = context.state_store("sessions")
        self._values = context.state_store("values")

    def process(self, record: Record) -> None:
        now, start, count = record.timestamp, record.timestamp, 1
        for session, before in list(self._sessions.find_sessions(record.key, now - _GAP_MS, now)):
            self._sessions.remove(session)
            start, count = min(start, session.start), count + before
        self._sessions.put(Windowed(record.key, start, now), count)
        self._values.put(record.key, record.value, now)
        earlier = self._values.get(record.key, now - 20)
        self._context.forward(record.with_value(f"{count} {earlier and earlier[0]}"))


class Renames(ValueTransformer):
    """Appends to a value how often the key has changed."""

    def init(self, context: ProcessorContext) -> None:
        self._changes = context.state_store("changes")

    def transform(self, key: str, value: str | None) -> str | None:
        changes = (self._changes.get(key) or 0) + 1
        self._changes.put(key, changes)
        return None if value is None else f"{value} {changes}"


class Hourly(Processor):
    """Schedules two punctuations whose times are far away."""

    def init(self, context: ProcessorContext) -> None:
        self._seen = context.state_store("seen")
        for kind in PunctuationType:
            context.schedule(3_600_000, kind, self._do_nothing)

    def process(self, record: Record) -> None:
        self._seen.put(record.key, record.value)

    def _do_nothing(self, timestamp: int) -> None:
        """Change nothing: only its time matters."""


class KeysByValue(Processor):
    """Writes entries under other keys than those of the records."""

    def init(self, context: ProcessorContext) -> None:
        self._seen = context.state_store("seen")

    def process(self, record: Record) -> None:
        self._seen.put(record.value, record.value)


class KeysAsNumbers(Processor):
    """Writes entries under the keys of the records, with another serde."""

    def init(self, context: ProcessorContext) -> None:
        self._seen = context.state_store("seen")

    def process(self, record: Record) -> None:
        self._seen.put(int(record.key[1:]), record.value)
