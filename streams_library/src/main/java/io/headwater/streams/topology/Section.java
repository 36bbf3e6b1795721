package io.headwater.streams.topology;

import org.apache.kafka.streams.Topology;

import java.util.LinkedHashMap;
import java.util.Map;
import java.util.TreeMap;

/** The section {@code exported} of a topology document. */
final class Section {
    static final String KEY = "exported";
    private static final int APPLICATION_DEPTH = 2;
    private static final int SUBTOPOLOGY_DEPTH = 3;
    private static final long[] UNITS = {86_400_000L, 3_600_000L, 60_000L, 1_000L};
    private static final String LETTERS = "dhms";
    private static final long MOST_UNITS = 999_999_999L;

    final String applicationId;
    final String text;

    private Section(final String applicationId, final String text) {
        this.applicationId = applicationId;
        this.text = text;
    }

    static Section of(final Topology topology, final Map<?, ?> properties) {
        Internals.checkVersion();
        final ExportedConfig config = new ExportedConfig(properties);
        final BuiltTopology built = new BuiltTopology(topology);
        final Map<String, Object> application = new LinkedHashMap<>();
        application.put("id", config.applicationId());
        application.put("kafkaStreams", Internals.version());
        application.put("protocol", config.protocol());
        if (!config.written().isEmpty()) {
            application.put("config", new TreeMap<>(config.written()));
        }
        final StringBuilder text = new StringBuilder(KEY + ":\n");
        Yaml.block(text, Map.of("application", application), 2, APPLICATION_DEPTH);
        if (built.name() != null) {
            Yaml.block(text, Map.of("name", built.name()), 2, 0);
        }
        Yaml.block(text, Map.of("subtopologies", built.subtopologies()), 2, SUBTOPOLOGY_DEPTH);
        Yaml.block(text, Map.of("repartitionTopics", built.repartitionTopics()), 2, 1);
        Yaml.block(text, Map.of("stores", withDurations(built.stores())), 2, 1);
        Yaml.block(text, Map.of("copartitioned", built.copartitioned()), 2, 0);
        return new Section(config.applicationId(), text.toString());
    }

    private static Map<String, Object> withDurations(final Map<String, Object> stores) {
        stores.values().forEach(Section::writeDuration);
        return stores;
    }

    @SuppressWarnings("unchecked")
    private static void writeDuration(final Object store) {
        ((Map<String, Object>) store).computeIfPresent("retention", (key, value) -> duration((Long) value));
    }

    /** Returns milliseconds in their largest whole unit. */
    private static Object duration(final long milliseconds) {
        for (int index = 0; index < UNITS.length; index++) {
            final long units = milliseconds / UNITS[index];
            if (units > 0 && units <= MOST_UNITS && milliseconds % UNITS[index] == 0) {
                return units + LETTERS.substring(index, index + 1);
            }
        }
        return milliseconds;
    }
}
