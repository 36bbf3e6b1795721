package io.headwater.streams;

import org.apache.kafka.common.MetricName;
import org.apache.kafka.common.metrics.Gauge;
import org.apache.kafka.common.metrics.JmxReporter;
import org.apache.kafka.common.metrics.KafkaMetricsContext;
import org.apache.kafka.common.metrics.MetricConfig;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.utils.Time;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The metrics of KIP-878, over JMX: {@code kafka.streams:type=stream-subtopology-metrics,subtopology-id=ID} and
 * {@code kafka.streams:type=stream-client-metrics,client-id=ID}. Only the leader of a group sets them, so take the
 * maximum of all instances.
 */
final class ParallelismMetrics {
    private static final String SUBTOPOLOGY = "stream-subtopology-metrics";
    private static final String CLIENT = "stream-client-metrics";

    private final Metrics registry;
    private final boolean isAutoscaling;
    private final Map<String, Integer> current = new ConcurrentHashMap<>();
    private final Map<String, Integer> expected = new ConcurrentHashMap<>();
    private final AtomicLong failures = new AtomicLong();

    ParallelismMetrics(final String clientId, final boolean isAutoscaling) {
        this.isAutoscaling = isAutoscaling;
        registry = new Metrics(
            new MetricConfig(), List.of(new JmxReporter()), Time.SYSTEM, new KafkaMetricsContext("kafka.streams"));
        if (isAutoscaling) {
            add(new MetricName("num-autoscaling-failures", CLIENT,
                "The number of times that the expansion of internal topics was given up.", Map.of("client-id", clientId)),
                (config, now) -> failures.get());
        }
    }

    void countFailure() {
        failures.incrementAndGet();
    }

    /**
     * Sets the numbers of tasks of sub-topologies.
     *
     * @param sources sub-topology → its source topics
     * @param now topic → partitions that the assignment uses
     * @param target topic → partitions that it should use
     */
    void set(final Map<String, Set<String>> sources, final Map<String, Integer> now, final Map<String, Integer> target) {
        sources.forEach((subtopology, topics) -> {
            set(subtopology, "current", current, most(topics, now));
            if (isAutoscaling) {
                set(subtopology, "expected", expected, most(topics, target));
            }
        });
    }

    private void set(
        final String subtopology, final String kind, final Map<String, Integer> values, final int value
    ) {
        if (values.put(subtopology, value) == null) {
            add(new MetricName(kind + "-subtopology-parallelism", SUBTOPOLOGY,
                "The " + kind + " number of partitions, and thus of tasks, of the sub-topology.",
                Map.of("subtopology-id", subtopology)), (config, now) -> values.get(subtopology));
        }
    }

    private void add(final MetricName name, final Gauge<?> gauge) {
        registry.addMetric(name, gauge);
    }

    private static int most(final Set<String> topics, final Map<String, Integer> counts) {
        return topics.stream().mapToInt(topic -> counts.getOrDefault(topic, 0)).max().orElse(0);
    }

    /** Removes the metrics. */
    void close() {
        registry.close();
    }
}
