"""The processors of the Java helper (`Works.java`). The generator names their stores."""

from collections.abc import Iterable

from headwater_spark.engine.records import Windowed
from headwater_spark.processors import Processor, ProcessorContext, PunctuationType, Record, Value


def appended(value: Value) -> Value:
    return None if value is None else f"{value}x"


def folded(total: Value, value: Value) -> str:
    one, other = text(total), text(value)
    return f"{other.split(':')[0]}:{(one + other).replace(':', '')[-6:]}"


def text(value: Value) -> str:
    """Return the text of a value as Java writes it."""
    if isinstance(value, Windowed):
        return f"[{value.key}@{value.start}/{value.end}]"
    return "null" if value is None else str(value)


def before(value: Value) -> Value:
    return None if value is None else text(value).split(":")[0]


def shown(rows: Iterable[tuple[Value, Value]]) -> str:
    return "".join(f"{text(key)}={text(value)}+" for key, value in rows)


def _text(value: Value) -> Value:
    return None if value is None else text(value)


class Append(Processor):
    """Forwards a new value per record; also for `processValues` and `transformValues`."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        self.context.forward(
            record.with_value(self.value_of(record.key, _text(record.value), record.timestamp))
        )

    def transform(self, key: Value, value: Value) -> Value:
        return self.value_of(key, _text(value), 0)

    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        del key, timestamp
        return appended(value)


class Remember(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        del timestamp
        if key is None:
            return appended(value)
        memory = self.context.state_store("memory")
        before = memory.get(text(key))
        memory.put(text(key), value)
        return before if value is None else folded(before, value)


class Recent(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        windows = self.context.state_store("windows")
        windows.put(key, value, timestamp)
        found = windows.fetch_range(key, timestamp - 20_000, timestamp + 5_000)
        return "r:" + "".join(f"{start}{each}+" for start, each in found)


class Version(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        versions = self.context.state_store("versions")
        until = versions.put(key, value, timestamp)
        found = versions.get(key), versions.get(key, timestamp - 3_000)
        shown = ("+none" if each is None else f"+{each[0]}@{each[1]}" for each in found)
        return f"v:{-1 if until is None else until}" + "".join(shown)


class Session(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        sessions = self.context.state_store("sessions")
        start, end, merged = timestamp, timestamp, ""
        for session, known in list(sessions.find_sessions(key, timestamp - 5_000, timestamp + 5_000)):
            start, end = min(start, session.start), max(end, session.end)
            merged = folded(merged, known)
            sessions.remove(session)
        merged = folded(merged, value)
        sessions.put(Windowed(key, start, end), merged)
        return f"s:{start}-{end}{merged}"


class Fail(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        del key, timestamp
        if text(value).endswith("3"):
            raise ValueError("ends with 3")
        return appended(value)


class Several(Recent, Remember):
    """Uses the stores of both: a window store and a key-value store."""

    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        return Remember.value_of(self, key, Recent.value_of(self, key, value, timestamp), timestamp)


class Spread(Append):
    """Forwards three records per record: later; with another header; earlier, with key and value swapped."""

    def process(self, record: Record) -> None:
        self.context.forward(record.with_timestamp(record.timestamp + 1_500))
        self.context.forward(record.with_headers((("own", b""),)))
        turned = record.with_key(before(record.value)).with_value(record.key)
        self.context.forward(turned.with_timestamp(max(0, record.timestamp - 4_000)))


class Choose(Append):
    def process(self, record: Record) -> None:
        self.context.forward(record, "odd" if len(_text(record.value) or "") % 2 else "even")


class Scan(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        del timestamp
        if key is None:
            return None
        store, key = self.context.state_store("scanned"), text(key)
        known = store.delete(key) if value is None else store.put_if_absent(before(value), value)
        store.put(key, value)
        found = (store.range("a", "b"), store.reverse_range(None, "b"), store.reverse_all())
        return "k:" + text(known) + "|".join(map(shown, (*found, store.prefix_scan(b"a"))))


class Stamped(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        store = self.context.state_store("stamped")
        known = store.get(text(key))
        store.put(text(key), (value, timestamp))
        return "t:" + ("none" if known is None else f"{known[0]}@{known[1]}")


class Duplicates(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        store = self.context.state_store("duplicates")
        store.put(text(key), value, timestamp)
        found = store.fetch_range(text(key), timestamp - 20_000, timestamp + 5_000)
        return f"d:{shown(found)}|{shown(store.all())}"


class Windows(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        store, key, first = self.context.state_store("all-windows"), text(key), max(0, timestamp - 20_000)
        known = store.fetch(key, timestamp)
        store.put(key, value, timestamp)
        found = (
            store.fetch_all(first, timestamp),
            store.backward_fetch_all(first, timestamp),
            store.all(),
            store.fetch_keys("a", "b", first, timestamp),
            store.backward_fetch_range(key, first, timestamp),
        )
        return "w:" + text(known) + "|".join(map(shown, found))


class Sessions(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        if key is None:
            return None
        store, key, start = (
            self.context.state_store("all-sessions"),
            text(key),
            timestamp - timestamp % 10_000,
        )
        known = store.fetch_session(key, start, timestamp)
        store.put(Windowed(key, start, timestamp), value)
        return "s:" + text(known) + shown(store.fetch(key))


class LookUp(Append):
    def value_of(self, key: Value, value: Value, timestamp: int) -> Value:
        del key, timestamp
        if value is None:
            return None
        found = self.context.state_store("global").get(value.split(":")[0])
        return f"g:{text(found)}"


class Keep(Processor):
    """Writes the global store."""

    store = "global"

    def init(self, context: ProcessorContext) -> None:
        self.context = context

    def process(self, record: Record) -> None:
        if record.key is not None:
            self.context.state_store(self.store).put(text(record.key), _text(record.value))


class Report(Keep):
    """Collects rows, and forwards them every five seconds of stream time."""

    store = "memory"

    def init(self, context: ProcessorContext) -> None:
        super().init(context)
        context.schedule(5_000, PunctuationType.STREAM_TIME, self.report)

    def report(self, timestamp: int) -> None:
        memory = self.context.state_store("memory")
        for key, value in list(memory.all()):
            self.context.forward(Record(key, f"{value}@", timestamp))
            memory.delete(key)


class Tick(Report):
    """The same every ten seconds of wall-clock time."""

    def init(self, context: ProcessorContext) -> None:
        self.context = context
        context.schedule(10_000, PunctuationType.WALL_CLOCK_TIME, self.report)
