package headwater.oracle;

import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.internals.SessionWindow;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.ValueAndTimestamp;
import org.apache.kafka.streams.state.VersionedKeyValueStore;
import org.apache.kafka.streams.state.VersionedRecord;
import org.apache.kafka.streams.state.WindowStore;
import org.apache.kafka.streams.state.WindowStoreIterator;

import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;

/** The behavior of processors by the name after the colon of a document's `class`; `tests/runtime/engine/fuzzing/processors.py` is the same in Python. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Works {
    private Works() {
    }

    /** Computes a new value from a record and stores. */
    interface Work {
        Object value(Function<String, StateStore> stores, Object key, Object value, long timestamp);
    }

    static Work named(final Call call) {
        switch (name(call)) {
            case "Remember": return Works::remember;
            case "Recent": return Works::recent;
            case "Version": return Works::version;
            case "Session": return Works::session;
            case "LookUp": return Works::lookUp;
            case "Fail": return Works::fail;
            case "Scan": return Works::scan;
            case "Stamped": return Works::stamped;
            case "Duplicates": return Works::duplicates;
            case "Windows": return Works::windows;
            case "Sessions": return Works::sessions;
            case "Several": return Works::several;
            default: return (stores, key, value, timestamp) -> Functions.appended(value, "x");
        }
    }

    static boolean keeps(final Call call) {
        return name(call).equals("Keep");
    }

    /** The punctuation of a processor that has one. */
    static void schedule(final Call call, final ProcessorContext context) {
        switch (name(call)) {
            case "Report":
                context.schedule(Duration.ofSeconds(5), PunctuationType.STREAM_TIME, now -> report(context, now));
                break;
            case "Tick":
                context.schedule(Duration.ofSeconds(10), PunctuationType.WALL_CLOCK_TIME, now -> report(context, now));
                break;
            default:
        }
    }

    static boolean sends(final Call call) {
        return name(call).equals("Spread") || name(call).equals("Choose");
    }

    /** Forwards several records for one, or one record to the child that its value selects. */
    static void send(final Call call, final ProcessorContext context, final Record record) {
        if (name(call).equals("Choose")) {
            context.forward(record, (record.value() == null ? 0 : text(record.value()).length()) % 2 == 0 ? "even" : "odd");
            return;
        }
        context.forward(record.withTimestamp(record.timestamp() + 1_500));
        context.forward(record.withHeaders(new RecordHeaders().add("own", new byte[0])));
        context.forward(record.withKey(Functions.before(record.value())).withValue(record.key()).withTimestamp(Math.max(0, record.timestamp() - 4_000)));
    }

    static boolean collects(final Call call) {
        return name(call).equals("Report") || name(call).equals("Tick");
    }

    static void collect(final StateStore store, final Object key, final Object value) {
        if (key != null) {
            ((KeyValueStore) store).put(text(key), value == null ? null : text(value));
        }
    }

    private static void report(final ProcessorContext context, final long now) {
        final KeyValueStore store = (KeyValueStore) context.getStateStore("memory");
        final List<KeyValue> rows = new ArrayList<>();
        try (KeyValueIterator iterator = store.all()) {
            iterator.forEachRemaining(row -> rows.add((KeyValue) row));
        }
        for (final KeyValue row : rows) {
            context.forward(new Record(row.key, row.value + "@", now));
            store.delete(row.key);
        }
    }

    private static Object remember(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return Functions.appended(value, "x");
        }
        final KeyValueStore store = (KeyValueStore) stores.apply("memory");
        final Object before = store.get(text(key));
        store.put(text(key), value == null ? null : text(value));
        return value == null ? before : Functions.folded(before, value);
    }

    private static Object recent(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final WindowStore store = (WindowStore) stores.apply("windows");
        store.put(text(key), value == null ? null : text(value), timestamp);
        final StringBuilder found = new StringBuilder("r:");
        try (WindowStoreIterator iterator = store.fetch(text(key), timestamp - 20_000, timestamp + 5_000)) {
            while (iterator.hasNext()) {
                final KeyValue entry = (KeyValue) iterator.next();
                found.append(entry.key).append(entry.value).append('+');
            }
        }
        return found.toString();
    }

    private static Object version(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final VersionedKeyValueStore store = (VersionedKeyValueStore) stores.apply("versions");
        final long until = store.put(text(key), value == null ? null : text(value), timestamp);
        final VersionedRecord latest = store.get(text(key));
        final VersionedRecord earlier = store.get(text(key), timestamp - 3_000);
        return "v:" + until + shown(latest) + shown(earlier);
    }

    private static String shown(final VersionedRecord record) {
        return record == null ? "+none" : "+" + record.value() + "@" + record.timestamp();
    }

    private static Object session(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final SessionStore store = (SessionStore) stores.apply("sessions");
        final List<KeyValue<Windowed, Object>> found = new ArrayList<>();
        try (KeyValueIterator iterator = store.findSessions(text(key), timestamp - 5_000, timestamp + 5_000)) {
            iterator.forEachRemaining(row -> found.add((KeyValue<Windowed, Object>) row));
        }
        long start = timestamp;
        long end = timestamp;
        Object merged = "";
        for (final KeyValue<Windowed, Object> session : found) {
            start = Math.min(start, session.key.window().start());
            end = Math.max(end, session.key.window().end());
            merged = Functions.folded(merged, session.value);
            store.remove(session.key);
        }
        merged = Functions.folded(merged, value);
        store.put(new Windowed(text(key), new SessionWindow(start, end)), merged);
        return "s:" + start + "-" + end + merged;
    }

    private static Object lookUp(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        final Object wanted = Functions.before(value);
        return wanted == null ? null : "g:" + ((KeyValueStore) stores.apply("global")).get(wanted);
    }

    private static Object fail(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (text(value).endsWith("3")) {
            throw new IllegalStateException("ends with 3");
        }
        return Functions.appended(value, "x");
    }

    private static Object scan(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final KeyValueStore store = (KeyValueStore) stores.apply("scanned");
        final Object before = value == null ? store.delete(text(key)) : store.putIfAbsent(Functions.before(value), text(value));
        store.put(text(key), value == null ? null : text(value));
        return "k:" + text(before) + shown(store.range("a", "b")) + "|" + shown(store.reverseRange(null, "b")) + "|" + shown(store.reverseAll())
            + "|" + shown(store.prefixScan("a", Serdes.String().serializer()));
    }

    private static Object stamped(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final KeyValueStore store = (KeyValueStore) stores.apply("stamped");
        final ValueAndTimestamp before = (ValueAndTimestamp) store.get(text(key));
        store.put(text(key), ValueAndTimestamp.make(value == null ? null : text(value), timestamp));
        return "t:" + (before == null ? "none" : before.value() + "@" + before.timestamp());
    }

    private static Object duplicates(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final WindowStore store = (WindowStore) stores.apply("duplicates");
        store.put(text(key), value == null ? null : text(value), timestamp);
        return "d:" + shown(store.fetch(text(key), timestamp - 20_000, timestamp + 5_000)) + "|" + shown(store.all());
    }

    private static Object windows(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final WindowStore store = (WindowStore) stores.apply("all-windows");
        final Object before = store.fetch(text(key), timestamp);
        store.put(text(key), value == null ? null : text(value), timestamp);
        final Instant from = Instant.ofEpochMilli(Math.max(0, timestamp - 20_000));
        final Instant to = Instant.ofEpochMilli(timestamp);
        return "w:" + text(before) + shown(store.fetchAll(from, to)) + "|" + shown(store.backwardFetchAll(from, to)) + "|" + shown(store.all())
            + "|" + shown(store.fetch("a", "b", from, to)) + "|" + shown(store.backwardFetch(text(key), from, to));
    }

    private static Object sessions(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        if (key == null) {
            return null;
        }
        final SessionStore store = (SessionStore) stores.apply("all-sessions");
        final long start = timestamp - timestamp % 10_000;
        final Object before = store.fetchSession(text(key), start, timestamp);
        store.put(new Windowed(text(key), new SessionWindow(start, timestamp)), value == null ? null : text(value));
        return "s:" + text(before) + shown(store.fetch(text(key)));
    }

    private static Object several(final Function<String, StateStore> stores, final Object key, final Object value, final long timestamp) {
        return remember(stores, key, recent(stores, key, value, timestamp), timestamp);
    }

    private static String shown(final KeyValueIterator rows) {
        final StringBuilder found = new StringBuilder();
        try (rows) {
            while (rows.hasNext()) {
                final KeyValue row = (KeyValue) rows.next();
                found.append(row.key).append('=').append(row.value).append('+');
            }
        }
        return found.toString();
    }

    private static String text(final Object value) {
        return String.valueOf(value);
    }

    private static String name(final Call call) {
        final String given = call.has("class") ? call.text("class") : "";
        return given.substring(given.indexOf(':') + 1);
    }
}
