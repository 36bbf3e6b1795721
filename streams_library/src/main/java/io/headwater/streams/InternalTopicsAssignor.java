package io.headwater.streams;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;

import java.nio.ByteBuffer;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/**
 * The assignor of Kafka Streams, with a check of the internal topics before each assignment.
 *
 * <p>{@link HeadwaterClientSupplier} sets it as assignor of the main consumer. It has the name, version and user data of
 * Kafka Streams' assignor, so instances with and without the library are members of the same group.
 */
public final class InternalTopicsAssignor implements ConsumerPartitionAssignor, Configurable {
    static final String DELEGATE = "__headwater.assignor__";
    static final String CONTEXT = "__headwater.context__";

    private static final String POLL_INTERVAL = "max.poll.interval.ms";
    private static final long DEFAULT_POLL_INTERVAL_MS = 300_000;

    private ConsumerPartitionAssignor assignor;
    private ExpectedTopics expectedTopics;
    private LeaderContext context;
    private AssignorInternals internals;
    private long longestMs;
    private boolean isFollowUpDue;

    /** The consumer calls this constructor, then {@link #configure}. */
    public InternalTopicsAssignor() {
    }

    @Override
    public void configure(final Map<String, ?> configs) {
        context = (LeaderContext) configs.get(CONTEXT);
        if (context == null) {
            throw new ConfigException("InternalTopicsAssignor is not for use without HeadwaterClientSupplier.");
        }
        internals = AssignorInternals.of(configs);
        final Object interval = configs.get(POLL_INTERVAL);
        longestMs = (interval == null ? DEFAULT_POLL_INTERVAL_MS : Long.parseLong(interval.toString().trim())) / 2;
        assignor = newAssignor(configs);
        expectedTopics = new ExpectedTopics(newAssignor(configs), context);
    }

    /** Returns a new instance of the assignor that Kafka Streams has chosen. */
    private static ConsumerPartitionAssignor newAssignor(final Map<String, ?> configs) {
        Object chosen = configs.get(DELEGATE);
        if (chosen instanceof List && ((List<?>) chosen).size() == 1) {
            chosen = ((List<?>) chosen).get(0);
        }
        try {
            final Class<?> type = chosen instanceof Class ? (Class<?>) chosen
                : Class.forName(String.valueOf(chosen), true, Utils.getContextOrKafkaClassLoader());
            final ConsumerPartitionAssignor created = (ConsumerPartitionAssignor) Utils.newInstance(type);
            if (created instanceof Configurable) {
                final Map<String, Object> own = new HashMap<>(configs);
                own.remove(DELEGATE);
                own.remove(CONTEXT);
                ((Configurable) created).configure(own);
            }
            return created;
        } catch (final ClassNotFoundException | ClassCastException error) {
            throw new ConfigException("partition.assignment.strategy", chosen, "must be the assignor of Kafka Streams");
        }
    }

    @Override
    public GroupAssignment assign(final Cluster metadata, final GroupSubscription subscriptions) {
        synchronized (context) { // the threads of an instance share what their leaders have learned
            final LeaderAssignment leader = new LeaderAssignment(
                context, assignor, expectedTopics, internals, longestMs);
            final GroupAssignment assignment = leader.assign(metadata, subscriptions);
            isFollowUpDue = leader.isFollowUpDue();
            return assignment;
        }
    }

    /** Returns the internal topics for a cluster; null if a source topic is missing. */
    List<ExpectedTopic> expectedTopics(final Cluster metadata, final GroupSubscription subscriptions) {
        return expectedTopics.find(metadata, subscriptions);
    }

    @Override
    public void onAssignment(final Assignment assignment, final ConsumerGroupMetadata metadata) {
        assignor.onAssignment(assignment, metadata);
        if (isFollowUpDue) {
            isFollowUpDue = false;
            internals.scheduleRebalance(System.currentTimeMillis() + LeaderContext.FOLLOW_UP_MS);
        }
    }

    @Override
    public ByteBuffer subscriptionUserData(final Set<String> topics) {
        return assignor.subscriptionUserData(topics);
    }

    @Override
    public List<RebalanceProtocol> supportedProtocols() {
        return assignor.supportedProtocols();
    }

    @Override
    public short version() {
        return assignor.version();
    }

    @Override
    public String name() {
        return assignor.name();
    }
}
