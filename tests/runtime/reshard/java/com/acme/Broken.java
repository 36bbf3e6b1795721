package com.acme;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.processor.StreamPartitioner;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

/** Partitioners that cannot be used, and one that chooses nothing. */
public final class Broken {
    private Broken() {
    }

    /** Its {@code partitions} is what each of them overrides. */
    abstract static class Base implements StreamPartitioner<String, Object> {
        public Integer partition(final String topic, final String key, final Object value, final int numPartitions) {
            return 0;
        }
    }

    public static final class Hangs extends Base {
        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            System.out.println("waiting for a service");
            while (true) {
                try {
                    Thread.sleep(1000);
                } catch (final InterruptedException error) {
                    continue;
                }
            }
        }
    }

    public static final class Exits extends Base {
        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            System.err.println("no license");
            System.exit(3);
            return Optional.empty();
        }
    }

    public static final class ReadsValue extends Base {
        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            return Optional.of(Set.of(value.hashCode() % numPartitions));
        }
    }

    public static final class Several extends Base {
        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            return Optional.of(Set.of(0, 1));
        }
    }

    public static final class Outside extends Base {
        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            return Optional.of(Set.of(numPartitions));
        }
    }

    public static final class FailsWithSecret extends Base {
        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            throw new AssertionError("the key is " + key);
        }
    }

    /** The partitioner of a producer that needs another config. */
    public static final class NamesConfigs implements Partitioner {
        @Override
        public void configure(final Map<String, ?> configs) {
            throw new ConfigException("password", configs.get("password"), "is wrong");
        }

        @Override
        public int partition(
            final String topic, final Object key, final byte[] keyBytes, final Object value, final byte[] valueBytes, final Cluster cluster
        ) {
            return 0;
        }

        @Override
        public void close() {
            // nothing is open
        }
    }

    /** Prints as native code does, which {@code System.setOut} does not change. */
    public static final class PrintsToDescriptor extends Base {
        public PrintsToDescriptor() {
            print();
        }

        @Override
        public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
            print();
            return Optional.of(Set.of(0));
        }

        private static void print() {
            try {
                new FileOutputStream(FileDescriptor.out).write("partition\n".getBytes(StandardCharsets.UTF_8));
            } catch (final IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }

    public static final class LeavesItToKafka implements StreamPartitioner<Object, Object> {
        public Integer partition(final String topic, final Object key, final Object value, final int numPartitions) {
            return null;
        }

        @Override
        public Optional<Set<Integer>> partitions(final String topic, final Object key, final Object value, final int numPartitions) {
            return Optional.empty();
        }
    }

    public static final class NeedsArguments {
        public NeedsArguments(final int number) {
        }
    }

    public static final class OfAnotherType {
    }
}
