package io.headwater.streams;

import org.apache.kafka.common.Uuid;

import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/**
 * The ownership records of one application: {@code pulumi up} writes there which ids its topics have.
 *
 * <p>All users who may write to the topic can write anything. A record that is too large, in another format, below a key
 * of another record, of a run that has not finished, or of a retired application is ignored, and memory is bounded.
 */
final class OwnershipRecords {
    static final String TOPIC = "headwater-ownership";
    private static final double FORMAT = 1;
    private static final int LARGEST_VALUE = 4 * 1024 * 1024;
    private static final int LONGEST_NAME = 1_000;
    /** Stacks that record the same application; all but one are left from moves to another stack. */
    private static final int MOST_KEYS = 100;

    private final String suffix;
    private final String application;
    /** Key → ids of topics of its latest record. */
    private final Map<String, Map<String, Uuid>> latest = new HashMap<>();

    OwnershipRecords(final String application) {
        this.application = application;
        this.suffix = "/" + application;
    }

    /** Adds the next record of the topic; a value of null deletes the record of the key. */
    void add(final byte[] key, final byte[] value) {
        final String name = text(key, LONGEST_NAME);
        if (name == null || !name.endsWith(suffix)) {
            return;
        }
        latest.remove(name);
        if (value != null && latest.size() < MOST_KEYS) {
            latest.put(name, topicIds(name, value));
        }
    }

    /** Returns topic → its recorded ids. If several stacks record the application, each of their ids counts. */
    Map<String, Set<Uuid>> topicIds() {
        final Map<String, Set<Uuid>> found = new HashMap<>();
        latest.values().forEach(ids ->
            ids.forEach((topic, id) -> found.computeIfAbsent(topic, ignored -> new HashSet<>()).add(id)));
        return found;
    }

    private Map<String, Uuid> topicIds(final String key, final byte[] value) {
        final String content = text(value, LARGEST_VALUE);
        final Map<String, Uuid> found = new HashMap<>();
        try {
            final Map<?, ?> fields = content == null ? Map.of() : (Map<?, ?>) Json.parse(content);
            final Map<?, ?> stack = (Map<?, ?>) fields.get("stack");
            if (!Double.valueOf(FORMAT).equals(fields.get("format")) || !application.equals(fields.get("application"))
                || !Boolean.TRUE.equals(fields.get("finished")) || !Boolean.FALSE.equals(fields.get("retired"))
                || !key.equals(stack.get("id") + suffix)) {
                return Map.of();
            }
            ((Map<?, ?>) fields.get("topics")).forEach((topic, id) -> {
                if (!"".equals(id)) { // an id that the run has not read
                    found.put((String) topic, Uuid.fromString(urlSafe((String) id)));
                }
            });
        } catch (final IllegalArgumentException | ClassCastException | NullPointerException error) {
            return Map.of();
        }
        return found;
    }

    /** Returns an id as Kafka writes it: librdkafka, with which Headwater reads ids, uses the other base 64 alphabet. */
    private static String urlSafe(final String id) {
        return id.replace('+', '-').replace('/', '_');
    }

    /** Returns the text of UTF-8 bytes; null if there are too many, or other bytes. */
    private static String text(final byte[] bytes, final int most) {
        if (bytes == null || bytes.length > most) {
            return null;
        }
        try {
            return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes)).toString();
        } catch (final CharacterCodingException error) {
            return null;
        }
    }
}
