package com.acme;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;

import java.util.Map;

/** The partitioner of a producer: its config says how many characters of the key are the region. */
public final class ProducerPartitioner implements Partitioner {
    private int length;

    @Override
    public void configure(final Map<String, ?> configs) {
        length = Integer.parseInt(String.valueOf(configs.get("region.length")));
        System.out.println("configured");
    }

    @Override
    public int partition(
        final String topic, final Object key, final byte[] keyBytes, final Object value, final byte[] valueBytes, final Cluster cluster
    ) {
        return Integer.parseInt(((String) key).substring(0, length)) % cluster.partitionCountForTopic(topic);
    }

    @Override
    public void close() {
        // nothing is open
    }
}
