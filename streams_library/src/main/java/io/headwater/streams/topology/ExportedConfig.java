package io.headwater.streams.topology;

import java.util.Collection;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Collectors;

/** The configs of an application that decide its internal topics, expansion and partitions. Others may be secret. */
final class ExportedConfig {
    private static final String APPLICATION_ID = "application.id";
    private static final String GROUP_PROTOCOL = "group.protocol";
    private static final List<String> PREFIXES = List.of("topic.", "static.partitioner.", "producer.static.partitioner.");
    private static final Set<String> KEYS = Set.of(
        "default.client.supplier",
        "ensure.explicit.internal.resource.naming",
        "internal.topics.setup",
        "max.poll.interval.ms", "consumer.max.poll.interval.ms", "main.consumer.max.poll.interval.ms",
        "metadata.max.age.ms",
        "partition.autoscaling.enabled", "partition.autoscaling.timeout.ms",
        "partitioner.class", "producer.partitioner.class",
        "processing.guarantee",
        "replication.factor",
        "topology.optimization",
        "upgrade.from",
        "windowstore.changelog.additional.retention.ms",
        "__enable.process.processValue.fix__",
        "__internal.override.topic.prefix__");

    private final Map<String, String> all = new TreeMap<>();

    ExportedConfig(final Map<?, ?> properties) {
        if (properties instanceof Properties) {
            final Properties withDefaults = (Properties) properties;
            withDefaults.stringPropertyNames().forEach(key -> all.put(key, withDefaults.getProperty(key)));
        }
        properties.forEach((key, value) -> {
            if (key instanceof String && value != null) {
                all.put((String) key, text(value));
            }
        });
    }

    private static String text(final Object value) {
        if (value instanceof Class) {
            return ((Class<?>) value).getName();
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(ExportedConfig::text).collect(Collectors.joining(","));
        }
        return String.valueOf(value);
    }

    String applicationId() {
        final String id = all.get(APPLICATION_ID);
        if (id == null || id.isBlank()) {
            throw new IllegalArgumentException("The properties have no application.id: the names of internal topics begin with it.");
        }
        return id;
    }

    String protocol() {
        return all.getOrDefault(GROUP_PROTOCOL, "classic").trim().toLowerCase(Locale.ROOT);
    }

    Map<String, Object> written() {
        final Map<String, Object> written = new TreeMap<>();
        all.forEach((key, value) -> {
            if (KEYS.contains(key) || PREFIXES.stream().anyMatch(key::startsWith)) {
                written.put(key, value);
            }
        });
        return written;
    }
}
