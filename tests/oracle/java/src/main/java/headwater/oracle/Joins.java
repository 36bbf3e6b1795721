package headwater.oracle;

import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.Joined;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.StreamJoined;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** The five joins; the types of both inputs determine the join. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Joins {
    private final Call call;
    private final Object left;
    private final Object right;
    private final boolean isLeft;
    private final boolean isOuter;

    Joins(final Call call, final Object left, final Object right) {
        this.call = call;
        this.left = left;
        this.right = right;
        this.isLeft = call.operator().equals("leftJoin");
        this.isOuter = call.operator().equals("outerJoin");
    }

    Object apply() {
        if (left instanceof KTable) {
            return call.has("foreignKey") ? foreignKey((KTable) left, (KTable) right) : tables((KTable) left, (KTable) right);
        }
        if (right instanceof KTable) {
            return streamTable((KStream) left, (KTable) right);
        }
        return right instanceof GlobalKTable ? global((KStream) left, (GlobalKTable) right) : streams((KStream) left, (KStream) right);
    }

    private KStream streams(final KStream stream, final KStream other) {
        final JoinWindows windows = windows();
        final StreamJoined joined = streamJoined();
        return isOuter ? stream.outerJoin(other, Functions.JOINER, windows, joined)
            : isLeft ? stream.leftJoin(other, Functions.JOINER, windows, joined) : stream.join(other, Functions.JOINER, windows, joined);
    }

    private JoinWindows windows() {
        final Call window = call.part("window");
        if (window.has("difference")) {
            return windowsOf(window.duration("difference"), window);
        }
        final Duration before = window.has("before") ? window.duration("before") : Duration.ZERO;
        final Duration after = window.has("after") ? window.duration("after") : Duration.ZERO;
        final JoinWindows windows = windowsOf(Duration.ZERO, window);
        return before.isNegative() ? windows.after(after).before(before) : windows.before(before).after(after);
    }

    @SuppressWarnings("deprecation")
    private static JoinWindows windowsOf(final Duration difference, final Call window) {
        if (!window.flag("eager")) {
            return JoinWindows.ofTimeDifferenceAndGrace(difference, DslCalls.grace(window));
        }
        final JoinWindows eager = JoinWindows.of(difference);
        return window.has("grace") ? eager.grace(window.duration("grace")) : eager;
    }

    private StreamJoined streamJoined() {
        StreamJoined joined = StreamJoined.with(null, null, null);
        if (call.has("name")) {
            joined = joined.withName(call.text("name"));
        }
        if (call.has("storeName")) {
            joined = joined.withStoreName(call.text("storeName"));
        }
        if (call.has("thisStore")) {
            joined = joined.withThisStoreSupplier((WindowBytesStoreSupplier) StoreOptions.supplier(window("thisStore")));
        }
        if (call.has("otherStore")) {
            joined = joined.withOtherStoreSupplier((WindowBytesStoreSupplier) StoreOptions.supplier(window("otherStore")));
        }
        final Map<String, String> overrides = StoreOptions.loggingOverrides(call);
        if (StoreOptions.isLoggingOff(call)) {
            return joined.withLoggingDisabled();
        }
        return overrides == null ? joined : joined.withLoggingEnabled(overrides);
    }

    private Call window(final String side) {
        final Call options = call.part(side);
        final Map<String, Object> completed = new HashMap<>(options.options());
        completed.putIfAbsent("kind", "window");
        completed.putIfAbsent("retainDuplicates", true);
        return new Call(side, completed);
    }

    private KStream streamTable(final KStream stream, final KTable table) {
        Joined joined = call.has("name") ? Joined.as(call.text("name")) : Joined.with(null, null, null);
        if (call.has("grace")) {
            joined = joined.withGracePeriod(call.duration("grace"));
        }
        return isLeft ? stream.leftJoin(table, Functions.JOINER, joined) : stream.join(table, Functions.JOINER, joined);
    }

    private KStream global(final KStream stream, final GlobalKTable table) {
        final Named named = DslCalls.named(call);
        final KeyValueMapper key = call.has("key") && call.text("key").contains("startswith") ? Functions.FOREIGN_KEY_MAPPER : Functions.KEY_MAPPER;
        if (named == null) {
            return isLeft ? stream.leftJoin(table, key, Functions.JOINER) : stream.join(table, key, Functions.JOINER);
        }
        return isLeft ? stream.leftJoin(table, key, Functions.JOINER, named) : stream.join(table, key, Functions.JOINER, named);
    }

    private KTable tables(final KTable table, final KTable other) {
        final Named named = DslCalls.named(call);
        final Materialized store = StoreOptions.materialized(call);
        if (isOuter) {
            return store == null ? named == null ? table.outerJoin(other, Functions.JOINER) : table.outerJoin(other, Functions.JOINER, named)
                : named == null ? table.outerJoin(other, Functions.JOINER, store) : table.outerJoin(other, Functions.JOINER, named, store);
        }
        if (isLeft) {
            return store == null ? named == null ? table.leftJoin(other, Functions.JOINER) : table.leftJoin(other, Functions.JOINER, named)
                : named == null ? table.leftJoin(other, Functions.JOINER, store) : table.leftJoin(other, Functions.JOINER, named, store);
        }
        return store == null ? named == null ? table.join(other, Functions.JOINER) : table.join(other, Functions.JOINER, named)
            : named == null ? table.join(other, Functions.JOINER, store) : table.join(other, Functions.JOINER, named, store);
    }

    private KTable foreignKey(final KTable table, final KTable other) {
        final TableJoined joined = call.has("name") ? TableJoined.as(call.text("name")) : null;
        final Materialized store = StoreOptions.materialized(call);
        if (isLeft) {
            return store == null ? joined == null ? table.leftJoin(other, Functions.FOREIGN_KEY, Functions.JOINER) : table.leftJoin(other, Functions.FOREIGN_KEY, Functions.JOINER, joined)
                : joined == null ? table.leftJoin(other, Functions.FOREIGN_KEY, Functions.JOINER, store) : table.leftJoin(other, Functions.FOREIGN_KEY, Functions.JOINER, joined, store);
        }
        return store == null ? joined == null ? table.join(other, Functions.FOREIGN_KEY, Functions.JOINER) : table.join(other, Functions.FOREIGN_KEY, Functions.JOINER, joined)
            : joined == null ? table.join(other, Functions.FOREIGN_KEY, Functions.JOINER, store) : table.join(other, Functions.FOREIGN_KEY, Functions.JOINER, joined, store);
    }
}
