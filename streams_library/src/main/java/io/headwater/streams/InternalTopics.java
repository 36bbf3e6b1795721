package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/**
 * Sets up the internal topics of an application before its first start: {@code KafkaStreams#init} of KIP-698, for
 * applications that are not set up by {@code pulumi up}.
 */
public final class InternalTopics {
    private static final Logger LOG = LoggerFactory.getLogger(InternalTopics.class);
    private static final Duration DEFAULT_TIMEOUT = Duration.ofMinutes(2);
    private static final long BACKOFF_MS = 200;

    private InternalTopics() {
    }

    /** Calls {@link #initialize(Topology, Properties, InitParameters, Duration)} with the default parameters. */
    public static void initialize(final Topology topology, final Properties properties) {
        initialize(topology, properties, InitParameters.initParameters(), DEFAULT_TIMEOUT);
    }

    /** Calls {@link #initialize(Topology, Properties, InitParameters, Duration)} with the default parameters. */
    public static void initialize(final Topology topology, final Properties properties, final Duration timeout) {
        initialize(topology, properties, InitParameters.initParameters(), timeout);
    }

    /** Calls {@link #initialize(Topology, Properties, InitParameters, Duration)} with a timeout of two minutes. */
    public static void initialize(
        final Topology topology, final Properties properties, final InitParameters parameters
    ) {
        initialize(topology, properties, parameters, DEFAULT_TIMEOUT);
    }

    /**
     * Creates all internal topics of an application.
     *
     * <p>{@code topology} must not be used for a {@code KafkaStreams} afterwards: build it again.
     *
     * @throws org.apache.kafka.streams.errors.MissingSourceTopicException if a source topic is missing
     * @throws MissingInternalTopicsException if some internal topics exist and others do not, unless the parameters
     *     enable the setup of the missing ones
     * @throws MisconfiguredInternalTopicException if an internal topic has a wrong config or partition count
     * @throws InternalTopicsAlreadySetupException if all internal topics exist
     * @throws TimeoutException if the setup takes longer than {@code timeout}
     */
    public static void initialize(
        final Topology topology, final Properties properties, final InitParameters parameters, final Duration timeout
    ) {
        final long deadline = System.currentTimeMillis() + timeout.toMillis();
        try (ColdStart start = new ColdStart(topology, properties)) {
            final List<ExpectedTopic> expected = start.expectedTopics(remaining(deadline));
            if (expected.isEmpty()) {
                return;
            }
            final Set<String> names = expected.stream().map(topic -> topic.name).collect(Collectors.toSet());
            final TopicComparison found = TopicComparison.of(
                expected, ClusterTopics.read(start.admin(), names, true, remaining(deadline)), Map.of());
            if (!found.misconfigured.isEmpty()) {
                throw Reports.misconfigured(found.misconfigured);
            }
            if (!found.tooFew.isEmpty() || !found.tooMany.isEmpty()) {
                throw Reports.miscounted(found);
            }
            if (found.missing.isEmpty()) {
                throw new InternalTopicsAlreadySetupException("All internal topics exist: " + String.join(", ", names)
                    + ". Start the application without initializing it.");
            }
            if (found.missing.size() < expected.size() && !parameters.setupInternalTopicsIfIncompleteEnabled()) {
                throw Reports.missing(found.missing, List.of());
            }
            final Set<String> missing = new HashSet<>(found.missing);
            create(start.admin(), expected.stream().filter(topic -> missing.contains(topic.name))
                .collect(Collectors.toList()), deadline);
        }
    }

    private static void create(final Admin admin, final Collection<ExpectedTopic> topics, final long deadline) {
        final Set<String> remaining = topics.stream().map(topic -> topic.name).collect(Collectors.toSet());
        while (!remaining.isEmpty()) {
            final List<NewTopic> requested = topics.stream().filter(topic -> remaining.contains(topic.name))
                .map(topic -> new NewTopic(topic.name, Optional.of(topic.partitions), replicas(topic)).configs(topic.configs))
                .collect(Collectors.toList());
            for (final Map.Entry<String, KafkaFuture<Void>> result : admin.createTopics(requested).values().entrySet()) {
                try {
                    result.getValue().get();
                    remaining.remove(result.getKey());
                    LOG.info("Created internal topic {}.", result.getKey());
                } catch (final ExecutionException error) {
                    retry(result.getKey(), error.getCause(), deadline);
                } catch (final InterruptedException error) {
                    throw new InterruptException(error);
                }
            }
            if (!remaining.isEmpty()) {
                ClusterTopics.sleep(BACKOFF_MS);
            }
        }
    }

    private static Optional<Short> replicas(final ExpectedTopic topic) {
        return topic.replicationFactor < 0 ? Optional.empty() : Optional.of(topic.replicationFactor);
    }

    /** Returns if a creation may succeed later: brokers do not answer, or an older topic is still being deleted. */
    private static void retry(final String topic, final Throwable cause, final long deadline) {
        if (!(cause instanceof RetriableException || cause instanceof TopicExistsException)) {
            throw new StreamsException(
                "Could not create topic " + topic + "." + Permissions.hint(cause, "Create", topic), cause);
        }
        if (System.currentTimeMillis() >= deadline) {
            throw new TimeoutException("Could not create topic " + topic + " in time.", cause);
        }
        LOG.info("Creation of internal topic {} failed, retrying: {}", topic, cause.toString());
    }

    private static long remaining(final long deadline) {
        return Math.max(1, deadline - System.currentTimeMillis());
    }
}
