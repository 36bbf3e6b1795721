package io.headwater.streams;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.PartitionInfo;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Metadata without the partitions that internal topics have no counterpart for yet. With it, an application continues
 * as before an expansion.
 */
final class CappedCluster {
    final Cluster metadata;
    /** Internal topic → partitions that Kafka Streams expects with this metadata. */
    final Map<String, Integer> internalCounts;

    private CappedCluster(final Cluster metadata, final Map<String, Integer> internalCounts) {
        this.metadata = metadata;
        this.internalCounts = internalCounts;
    }

    /**
     * Returns metadata with which the application can continue; null if there is none.
     *
     * <p>A leader that has assigned tasks before takes the counts of that assignment. A new leader takes the count of the
     * smallest topic for all, if exactly the topics that are too small depend on it.
     */
    static CappedCluster find(
        final LeaderContext context, final ExpectedTopics expectedTopics, final Cluster metadata,
        final GroupSubscription subscriptions, final TopicComparison found, final Map<String, ActualTopic> actual
    ) {
        if (!found.missing.isEmpty()) {
            return null;
        }
        if (!context.lastCounts.isEmpty()) {
            final CappedCluster last = of(expectedTopics, cap(metadata, context.lastCounts), subscriptions);
            if (last != null && last.internalCounts.entrySet().stream()
                .allMatch(entry -> partitions(actual, entry.getKey()) >= entry.getValue())) {
                return last;
            }
        }
        final int least = found.tooFew.stream().mapToInt(count -> count.found).min().orElse(0);
        final Map<String, Integer> counts = new HashMap<>();
        metadata.topics().forEach(topic -> counts.put(topic, least));
        final CappedCluster same = of(expectedTopics, cap(metadata, counts), subscriptions);
        return same != null && same.internalCounts.entrySet().stream()
            .allMatch(entry -> partitions(actual, entry.getKey()) == entry.getValue()) ? same : null;
    }

    private static int partitions(final Map<String, ActualTopic> actual, final String topic) {
        return actual.containsKey(topic) ? actual.get(topic).partitions : 0;
    }

    private static CappedCluster of(
        final ExpectedTopics expectedTopics, final Cluster metadata, final GroupSubscription subscriptions
    ) {
        final List<ExpectedTopic> expected = expectedTopics.ask(metadata, subscriptions);
        if (expected == null) {
            return null;
        }
        final Map<String, Integer> counts = new HashMap<>();
        expected.forEach(topic -> counts.put(topic.name, topic.partitions));
        return new CappedCluster(metadata, counts);
    }

    /** Returns metadata without the partitions from the given counts on. */
    static Cluster cap(final Cluster metadata, final Map<String, Integer> counts) {
        final List<PartitionInfo> partitions = new ArrayList<>();
        for (final String topic : metadata.topics()) {
            for (final PartitionInfo partition : metadata.partitionsForTopic(topic)) {
                if (partition.partition() < counts.getOrDefault(topic, Integer.MAX_VALUE)) {
                    partitions.add(partition);
                }
            }
        }
        return new Cluster(metadata.clusterResource().clusterId(), metadata.nodes(), partitions,
            metadata.unauthorizedTopics(), metadata.invalidTopics(), metadata.internalTopics(), metadata.controller());
    }
}
