package com.acme;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.processor.StreamPartitioner;

import java.util.Optional;
import java.util.Set;

/** The first byte of a key decides. */
public final class BytesPartitioner implements StreamPartitioner<Bytes, Object> {
    /** The only method in versions before 4.0. */
    public Integer partition(final String topic, final Bytes key, final Object value, final int numPartitions) {
        return key.get()[0] % numPartitions;
    }

    @Override
    public Optional<Set<Integer>> partitions(final String topic, final Bytes key, final Object value, final int numPartitions) {
        return Optional.of(Set.of(partition(topic, key, value, numPartitions)));
    }
}
