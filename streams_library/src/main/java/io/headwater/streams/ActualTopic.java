package io.headwater.streams;

import org.apache.kafka.common.Uuid;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/** An internal topic as it is on the cluster. {@code configs} is empty if they may not be read. */
final class ActualTopic {
    final String name;
    final Uuid id;
    final int partitions;
    final Map<String, String> configs;

    ActualTopic(final String name, final Uuid id, final int partitions, final Map<String, String> configs) {
        this.name = name;
        this.id = id;
        this.partitions = partitions;
        this.configs = Collections.unmodifiableMap(new TreeMap<>(configs));
    }
}
