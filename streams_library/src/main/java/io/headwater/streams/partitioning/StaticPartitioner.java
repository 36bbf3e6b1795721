package io.headwater.streams.partitioning;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.InvalidPartitionsException;

import java.util.Map;

/**
 * A static partitioner for producers: {@code partitioner.class}, in Kafka Streams {@code producer.partitioner.class}.
 *
 * <p>{@code static.partitioner.class} chooses the function: {@code initial-hash}, {@code linear-hash},
 * {@code key-prefix} or {@code range}. Records without key go to a random partition.
 *
 * <p>Kafka Streams computes some partitions itself: changelog topics, topics of foreign-key joins, windowed keys, and
 * operators with a {@code StreamPartitioner}. A producer does not ask its partitioner about these records.
 */
public final class StaticPartitioner implements Partitioner {
    private KeyPartitioner function;

    /** The producer calls this constructor, then {@link #configure}. */
    public StaticPartitioner() {
    }

    /**
     * Reads the configs {@code static.partitioner.*}.
     *
     * @throws ConfigException if one is missing or not valid: there is no default
     */
    @Override
    public void configure(final Map<String, ?> configs) {
        function = KeyPartitioner.of(configs);
    }

    /**
     * Returns the partition of a serialized key.
     *
     * @throws InvalidPartitionsException if the partition does not exist yet: the topic must be expanded first
     */
    @Override
    public int partition(
        final String topic, final Object key, final byte[] keyBytes, final Object value, final byte[] valueBytes,
        final Cluster cluster
    ) {
        final int count = cluster.partitionsForTopic(topic).size();
        if (keyBytes == null) {
            return java.util.concurrent.ThreadLocalRandom.current().nextInt(Math.max(1, count));
        }
        final int partition = function.partition(keyBytes, count);
        if (partition >= count) {
            throw new InvalidPartitionsException("A record of " + topic + " requires partition " + partition + " of "
                + count + ": expand the topic first.");
        }
        return partition;
    }

    @Override
    public void close() {
        // nothing is open
    }
}
