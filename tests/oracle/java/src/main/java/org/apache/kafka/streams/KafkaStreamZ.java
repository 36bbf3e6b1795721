package org.apache.kafka.streams;

import headwater.oracle.ExportedPrograms;

import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;

import java.time.Duration;
import java.util.Map;
import java.util.Properties;

/**
 * Takes the place of KafkaStreams in programs whose topology is captured: {@link ExportedPrograms} loads it with that name, which
 * has the same length. Its constructors report the topology and end the program.
 */
public class KafkaStreamZ implements AutoCloseable {
    public KafkaStreamZ(final Topology topology, final Properties properties) {
        ExportedPrograms.report(topology, properties);
    }

    public KafkaStreamZ(final Topology topology, final Properties properties, final KafkaClientSupplier clients) {
        ExportedPrograms.report(topology, properties);
    }

    public KafkaStreamZ(final Topology topology, final StreamsConfig config) {
        final Properties properties = new Properties();
        properties.putAll(config.originals());
        ExportedPrograms.report(topology, properties);
    }

    public void start() {
        throw new IllegalStateException("not reached");
    }

    public void setUncaughtExceptionHandler(final StreamsUncaughtExceptionHandler handler) {
        throw new IllegalStateException("not reached");
    }

    @Override
    public void close() {
        throw new IllegalStateException("not reached");
    }

    public boolean close(final Duration timeout) {
        throw new IllegalStateException("not reached");
    }

    public Map<String, Object> metrics() {
        throw new IllegalStateException("not reached");
    }
}
