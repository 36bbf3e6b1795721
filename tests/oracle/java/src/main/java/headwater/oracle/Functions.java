package headwater.oracle;

import org.apache.kafka.streams.KeyValue;
import org.apache.kafka.streams.kstream.Aggregator;
import org.apache.kafka.streams.kstream.Initializer;
import org.apache.kafka.streams.kstream.KeyValueMapper;
import org.apache.kafka.streams.kstream.Merger;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Reducer;
import org.apache.kafka.streams.kstream.ValueJoiner;
import org.apache.kafka.streams.kstream.ValueMapper;
import org.apache.kafka.streams.processor.TimestampExtractor;

import java.util.List;
import java.util.function.Function;

/**
 * The functions of all documents, on texts. Some return null, which deletes the key. Values have the form `key:rest`; results keep it and
 * stay short. `tests/runtime/engine/fuzzing` has the same functions in SQL.
 */
@SuppressWarnings("rawtypes")
final class Functions {
    static final Aggregator AGGREGATOR = (key, value, aggregate) -> added(aggregate, value);
    static final Reducer REDUCER = Functions::added;
    static final Merger MERGER = (key, left, right) -> folded(left, right);
    static final TimestampExtractor EXTRACTOR = (record, before) -> timestamp(record.timestamp(), text(record.value()));
    static final KeyValueMapper KEY_MAPPER = (key, value) -> key(value);
    static final KeyValueMapper PAIR_MAPPER = (key, value) -> KeyValue.pair(key(value), appended(value, "p"));
    static final KeyValueMapper PAIRS_MAPPER = (key, value) -> value == null ? List.of()
        : List.of(KeyValue.pair(key, appended(value, "")), KeyValue.pair(key(value), appended(value, "f")));
    static final ValueMapper VALUE_MAPPER = value -> text(value).endsWith("5") ? null : appended(value, "m");
    static final ValueMapper VALUES_MAPPER = value -> value == null ? List.of() : List.of(appended(value, ""), appended(value, "g"));
    static final ValueJoiner JOINER = (left, right) -> text(right).endsWith("9") ? null
        : ValueFormat.made(before(text(left)) + ":" + ending((text(left) + "+" + text(right)).replace(":", ""), 8));
    static final Function FOREIGN_KEY = value -> text(value).startsWith(ValueFormat.hasHashes() ? "1" : "d") ? null : key(value);
    /** The key of a global table: null for some records. */
    static final KeyValueMapper FOREIGN_KEY_MAPPER = (key, value) -> FOREIGN_KEY.apply(value);

    private Functions() {
    }

    /** `where` selects one of two: multiples of two or of three. */
    static Predicate predicate(final Call call) {
        final int divisor = call.has("where") && call.text("where").contains("% 2") ? 2 : 3;
        return (key, value) -> (value == null ? 0 : length(text(value))) % divisor != 0;
    }

    /** Returns an empty text or null. */
    static Initializer initializer(final Call call) {
        final Object first = call.has("init") && call.text("init").contains("null as") ? null : ValueFormat.made("");
        return () -> first;
    }

    /** Returns the record's timestamp, sometimes a later one, sometimes an invalid one. */
    private static long timestamp(final long given, final String value) {
        return value.endsWith("4") ? -1 : value.endsWith("6") ? given + 7_000 : given;
    }

    /** Returns one of two sink topics. */
    static String topic(final Object value) {
        return "out-chosen-" + (value == null ? 0 : length(text(value))) % 2;
    }

    private static String text(final Object value) {
        return ValueFormat.text(value);
    }

    /** The key of a value: the text before the colon, one of four for values without a text of their own. */
    private static String key(final Object value) {
        return value == null || !ValueFormat.hasHashes() ? before(value) : String.valueOf(ValueFormat.hash(text(value)) % 4);
    }

    static String before(final Object value) {
        return value == null ? null : text(value).split(":", 2)[0];
    }

    static Object appended(final Object value, final String end) {
        return value == null ? null : ValueFormat.made(text(value) + end);
    }

    private static Object added(final Object total, final Object value) {
        return text(value).endsWith("7") ? null : folded(total, value);
    }

    static Object folded(final Object total, final Object value) {
        return ValueFormat.made(before(text(value)) + ":" + ending((text(total) + text(value)).replace(":", ""), 6));
    }

    private static String ending(final String text, final int length) {
        return text.substring(text.offsetByCodePoints(text.length(), -Math.min(length, length(text))));
    }

    /** The number of characters, as SQL counts them: of code points. */
    private static int length(final String text) {
        return text.codePointCount(0, text.length());
    }
}
