package io.headwater.streams.partitioning;

import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Computes the partition of a serialized key. Pure: the result depends on key, count and configs only. */
abstract class KeyPartitioner {
    static final String CLASS = "static.partitioner.class";
    static final String INITIAL = "static.partitioner.initial.partitions";
    static final String TABLE = "static.partitioner.table";
    static final String SEPARATOR = "static.partitioner.separator";
    static final String BOUNDS = "static.partitioner.bounds";

    /** Returns the partition, 0 or more. It may be {@code count} or more: then the topic must be expanded. */
    abstract int partition(byte[] key, int count);

    /**
     * Returns the partitioner of the configs.
     *
     * @throws ConfigException if a config is missing or not valid
     */
    static KeyPartitioner of(final Map<String, ?> configs) {
        final String name = text(configs, CLASS);
        switch (name) {
            case "initial-hash":
                return new InitialHash(whole(INITIAL, text(configs, INITIAL), 1));
            case "linear-hash":
                return new LinearHash(whole(INITIAL, text(configs, INITIAL), 1));
            case "key-prefix":
                return prefixes(configs);
            case "range":
                return range(configs);
            default:
                throw new InvalidSettingException(CLASS, name, "must be initial-hash, linear-hash, key-prefix or range");
        }
    }

    private static KeyPartitioner prefixes(final Map<String, ?> configs) {
        final Map<String, Integer> table = new HashMap<>();
        for (final String entry : text(configs, TABLE).split(",")) {
            final int equals = entry.trim().lastIndexOf('=');
            if (entry.trim().isEmpty()) {
                continue;
            } else if (equals < 1) {
                throw new InvalidSettingException(TABLE, entry, "must be prefix=partition, separated by commas");
            }
            table.put(entry.trim().substring(0, equals), whole(TABLE, entry.trim().substring(equals + 1), 0));
        }
        final KeyPartitioner others =
            configs.get(INITIAL) == null ? null : new InitialHash(whole(INITIAL, text(configs, INITIAL), 1));
        if (table.isEmpty() && others == null) {
            throw new InvalidSettingException(INITIAL, null, "must be the initial number of partitions");
        }
        final Object separator = configs.get(SEPARATOR);
        final String chosen = separator == null || separator.toString().isEmpty() ? ":" : separator.toString();
        return new KeyPrefix(table, chosen.getBytes(StandardCharsets.UTF_8), others);
    }

    private static KeyPartitioner range(final Map<String, ?> configs) {
        final List<int[]> bounds = new ArrayList<>();
        for (final String bound : text(configs, BOUNDS).split(",")) {
            if (bound.trim().isEmpty()) {
                continue;
            }
            final int[] points = bound.trim().codePoints().toArray();
            if (!bounds.isEmpty() && Arrays.compare(bounds.get(bounds.size() - 1), points) >= 0) {
                throw new InvalidSettingException(BOUNDS, configs.get(BOUNDS), "must be ascending texts, separated by commas");
            }
            bounds.add(points);
        }
        if (bounds.isEmpty()) {
            throw new InvalidSettingException(BOUNDS, configs.get(BOUNDS), "must be ascending texts, separated by commas");
        }
        return new Range(bounds);
    }

    private static String text(final Map<String, ?> configs, final String key) {
        final Object value = configs.get(key);
        return value == null ? "" : value.toString().trim();
    }

    private static int whole(final String key, final String text, final int least) {
        try {
            final int number = Integer.parseInt(text.trim());
            if (number >= least) {
                return number;
            }
        } catch (final NumberFormatException error) {
            // refused below
        }
        throw new InvalidSettingException(key, text, "must be a whole number of at least " + least);
    }

    private static int positiveHash(final byte[] key) {
        return Utils.toPositive(Utils.murmur2(key));
    }

    /** Kafka's default partitioner on the initial number of partitions. */
    private static final class InitialHash extends KeyPartitioner {
        private final int initial;

        InitialHash(final int initial) {
            this.initial = initial;
        }

        @Override
        int partition(final byte[] key, final int count) {
            return positiveHash(key) % initial;
        }
    }

    /** Linear hashing: an added partition takes keys from one partition only (KIP-287). */
    private static final class LinearHash extends KeyPartitioner {
        private final int initial;

        LinearHash(final int initial) {
            this.initial = initial;
        }

        @Override
        int partition(final byte[] key, final int count) {
            final int buckets = Math.max(count, initial);
            long before = initial;
            while (before * 2 <= buckets) {
                before *= 2;
            }
            final long number = positiveHash(key);
            final long found = number % (before * 2);
            return (int) (found < buckets ? found : found % before);
        }
    }

    /** By the prefix of the key: partitions from a table, other prefixes by their hash. */
    private static final class KeyPrefix extends KeyPartitioner {
        private final Map<Prefix, Integer> table = new HashMap<>();
        private final byte[] separator;
        private final KeyPartitioner others;

        KeyPrefix(final Map<String, Integer> table, final byte[] separator, final KeyPartitioner others) {
            table.forEach((prefix, partition) ->
                this.table.put(new Prefix(prefix.getBytes(StandardCharsets.UTF_8)), partition));
            this.separator = separator;
            this.others = others;
        }

        @Override
        int partition(final byte[] key, final int count) {
            final byte[] prefix = Arrays.copyOf(key, end(key));
            final Integer partition = table.get(new Prefix(prefix));
            if (partition != null) {
                return partition;
            } else if (others == null) {
                throw new IllegalArgumentException("The prefix of the key is not in " + TABLE + ": "
                    + new String(prefix, StandardCharsets.UTF_8));
            }
            return others.partition(prefix, count);
        }

        private int end(final byte[] key) {
            for (int start = 0; start + separator.length <= key.length; start++) {
                if (Arrays.equals(key, start, start + separator.length, separator, 0, separator.length)) {
                    return start;
                }
            }
            return key.length;
        }
    }

    private static final class Prefix {
        private final byte[] bytes;

        Prefix(final byte[] bytes) {
            this.bytes = bytes;
        }

        @Override
        public boolean equals(final Object other) {
            return other instanceof Prefix && Arrays.equals(bytes, ((Prefix) other).bytes);
        }

        @Override
        public int hashCode() {
            return Arrays.hashCode(bytes);
        }
    }

    /** By key range: texts are compared by their code points. */
    private static final class Range extends KeyPartitioner {
        private final List<int[]> bounds;

        Range(final List<int[]> bounds) {
            this.bounds = bounds;
        }

        @Override
        int partition(final byte[] key, final int count) {
            final int[] text = Utf8.codePoints(key);
            int partition = 0;
            while (partition < bounds.size() && Arrays.compare(bounds.get(partition), text) <= 0) {
                partition++;
            }
            return partition;
        }
    }
}
