package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.streams.StreamsConfig;

import java.util.Map;

/** Methods that 4.0 renamed. */
final class Renamed {
    private Renamed() {
    }

    static void readThreads(final TopologyMetadata metadata, final StreamsConfig config) {
        metadata.getNumStreamThreads(config);
    }

    static Map<String, String> configs(final InternalTopicConfig topic, final Map<String, String> defaults, final long additionalRetention) {
        return topic.getProperties(defaults, additionalRetention);
    }
}
