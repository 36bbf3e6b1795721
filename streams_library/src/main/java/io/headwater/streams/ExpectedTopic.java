package io.headwater.streams;

import java.util.Collections;
import java.util.Map;
import java.util.TreeMap;

/** An internal topic as Kafka Streams would create it. */
final class ExpectedTopic {
    final String name;
    final int partitions;
    final short replicationFactor;
    final Map<String, String> configs;

    ExpectedTopic(
        final String name, final int partitions, final short replicationFactor, final Map<String, String> configs
    ) {
        this.name = name;
        this.partitions = partitions;
        this.replicationFactor = replicationFactor;
        this.configs = Collections.unmodifiableMap(new TreeMap<>(configs));
    }

    /** Returns whether it is a repartition topic: Kafka Streams creates only these without {@code compact}, forever. */
    boolean isRepartition() {
        return !name.endsWith("-changelog");
    }
}
