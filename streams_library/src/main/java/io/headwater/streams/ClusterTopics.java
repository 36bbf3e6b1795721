package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.Config;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.streams.errors.StreamsException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/** Reads topics of the cluster. */
final class ClusterTopics {
    private static final Logger LOG = LoggerFactory.getLogger(ClusterTopics.class);
    private static final long BACKOFF_MS = 200;
    /** A topic that was just created is not known to each broker yet. */
    private static final long MISSING_MS = 2_000;

    private ClusterTopics() {
    }

    /**
     * Returns the existing topics of {@code names} by name.
     *
     * @throws TimeoutException if the brokers do not answer in time
     * @throws StreamsException if the topics may not be described
     */
    static Map<String, ActualTopic> read(
        final Admin admin, final Collection<String> names, final boolean withConfigs, final long timeoutMs
    ) {
        final long started = System.currentTimeMillis();
        final Map<String, TopicDescription> found = new HashMap<>();
        final Set<String> remaining = new HashSet<>(names);
        while (true) {
            final boolean isAnswered = describe(admin, remaining, found);
            remaining.removeAll(found.keySet());
            final long waited = System.currentTimeMillis() - started;
            if (remaining.isEmpty() || isAnswered && waited >= MISSING_MS) {
                break;
            }
            if (waited >= timeoutMs) {
                throw new TimeoutException("The internal topics " + remaining + " could not be described within "
                    + timeoutMs + " ms. This can happen if the Kafka cluster is temporarily not available.");
            }
            sleep(BACKOFF_MS);
        }
        final Map<String, Map<String, String>> configs =
            withConfigs && !found.isEmpty() ? configs(admin, found.keySet()) : Collections.emptyMap();
        final Map<String, ActualTopic> topics = new TreeMap<>();
        found.forEach((name, topic) -> topics.put(name, new ActualTopic(
            name, topic.topicId(), topic.partitions().size(), configs.getOrDefault(name, Collections.emptyMap()))));
        return topics;
    }

    /** Adds the topics that exist to {@code found}; returns whether all other ones are known not to exist. */
    private static boolean describe(
        final Admin admin, final Collection<String> names, final Map<String, TopicDescription> found
    ) {
        boolean isAnswered = true;
        for (final Map.Entry<String, KafkaFuture<TopicDescription>> entry
            : admin.describeTopics(names).topicNameValues().entrySet()) {
            try {
                found.put(entry.getKey(), entry.getValue().get());
            } catch (final ExecutionException error) {
                if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                    continue;
                }
                if (!(error.getCause() instanceof RetriableException)) {
                    throw new StreamsException("Could not describe topic " + entry.getKey() + "."
                        + Permissions.hint(error.getCause(), "Describe", entry.getKey()), error.getCause());
                }
                isAnswered = false;
            } catch (final InterruptedException error) {
                throw new InterruptException(error);
            }
        }
        return isAnswered;
    }

    private static Map<String, Map<String, String>> configs(final Admin admin, final Collection<String> names) {
        final Map<String, Map<String, String>> found = new HashMap<>();
        final Map<ConfigResource, KafkaFuture<Config>> futures = admin.describeConfigs(names.stream()
            .map(name -> new ConfigResource(ConfigResource.Type.TOPIC, name)).collect(Collectors.toList())).values();
        for (final Map.Entry<ConfigResource, KafkaFuture<Config>> entry : futures.entrySet()) {
            try {
                final Map<String, String> configs = new HashMap<>();
                for (final ConfigEntry each : entry.getValue().get().entries()) {
                    if (each.value() != null) {
                        configs.put(each.name(), each.value());
                    }
                }
                found.put(entry.getKey().name(), configs);
            } catch (final ExecutionException error) {
                LOG.warn("The configs of internal topic {} are not checked: {}{}", entry.getKey().name(),
                    error.getCause().toString(),
                    Permissions.hint(error.getCause(), "DescribeConfigs", entry.getKey().name()));
            } catch (final InterruptedException error) {
                throw new InterruptException(error);
            }
        }
        return found;
    }

    static void sleep(final long milliseconds) {
        try {
            Thread.sleep(milliseconds);
        } catch (final InterruptedException error) {
            throw new InterruptException(error);
        }
    }
}
