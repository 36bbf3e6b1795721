package com.acme;

import org.apache.kafka.streams.processor.StreamPartitioner;

import java.util.Optional;
import java.util.Set;

/** All customers of a region, the number in the key, are in one partition. */
public final class RegionPartitioner implements StreamPartitioner<String, Object> {
    /** The only method in versions before 4.0. */
    public Integer partition(final String topic, final String key, final Object value, final int numPartitions) {
        return Integer.parseInt(key.replaceAll("\\D", "")) % numPartitions;
    }

    @Override
    public Optional<Set<Integer>> partitions(final String topic, final String key, final Object value, final int numPartitions) {
        return Optional.of(Set.of(partition(topic, key, value, numPartitions)));
    }
}
