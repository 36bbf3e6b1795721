package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/**
 * Finds the internal topics that Kafka Streams expects, with counts and configs, and changes nothing.
 *
 * <p>An instance of Kafka Streams' own assignor begins an assignment as if no internal topic existed. It then asks for
 * the creation of each topic, which is recorded, and the assignment is aborted before tasks are assigned. This needs
 * public interfaces only, and includes whatever a version decides differently.
 */
final class ExpectedTopics {
    private static final int MOST_PASSES = 4;
    private static final UnknownTopicOrPartitionException ASKED = new UnknownTopicOrPartitionException(
        "Not missing: Headwater reads which topics Kafka Streams expects.");

    private final ConsumerPartitionAssignor assignor;
    private final LeaderContext context;
    private Map<String, Integer> knownFor = Collections.emptyMap();
    private List<ExpectedTopic> known = Collections.emptyList();

    ExpectedTopics(final ConsumerPartitionAssignor assignor, final LeaderContext context) {
        this.assignor = assignor;
        this.context = context;
    }

    /**
     * Returns the internal topics for the source topics of {@code metadata}.
     *
     * <p>Null: Kafka Streams does not come to the internal topics, because a source topic is missing or a member shuts
     * the application down. Its own assignment then reports this.
     */
    List<ExpectedTopic> find(final Cluster metadata, final GroupSubscription subscriptions) {
        final Map<String, Integer> counts = countsOf(metadata);
        counts.keySet().removeAll(names(known));
        if (!known.isEmpty() && counts.equals(knownFor)) {
            return known;
        }
        final List<ExpectedTopic> found = ask(metadata, subscriptions);
        if (found != null) {
            counts.keySet().removeAll(names(found));
            known = found;
            knownFor = counts;
        }
        return found;
    }

    /** Returns the internal topics as {@link #find} does, without remembering them. */
    List<ExpectedTopic> ask(final Cluster metadata, final GroupSubscription subscriptions) {
        final Map<String, ExpectedTopic> found = new TreeMap<>();
        for (int pass = 0; pass < MOST_PASSES; pass++) {
            final Recording recording = new Recording(found);
            try {
                context.proxy.during(recording, () -> assignor.assign(metadata, subscriptions));
                return null;
            } catch (final AbortedAssignment aborted) {
                if (aborted.isComplete) {
                    return new ArrayList<>(found.values());
                }
            }
        }
        throw new IllegalStateException("The assignor of Kafka Streams creates topics more often than it is known to.");
    }

    static Map<String, Integer> countsOf(final Cluster metadata) {
        final Map<String, Integer> counts = new HashMap<>();
        metadata.topics().forEach(topic -> counts.put(topic, metadata.partitionCountForTopic(topic)));
        return counts;
    }

    private static List<String> names(final Collection<ExpectedTopic> topics) {
        final List<String> names = new ArrayList<>();
        topics.forEach(topic -> names.add(topic.name));
        return names;
    }

    /** Known topics exist with the expected count, all other ones are missing. A creation is recorded and aborts. */
    private static final class Recording implements AdminPass {
        private final Map<String, ExpectedTopic> found;

        Recording(final Map<String, ExpectedTopic> found) {
            this.found = found;
        }

        @Override
        public Object describeTopics(final Admin admin, final Collection<String> topics) {
            final Map<String, KafkaFuture<TopicDescription>> answers = new HashMap<>();
            for (final String topic : topics) {
                final ExpectedTopic expected = found.get(topic);
                answers.put(topic, expected == null ? TopicAnswers.failed(ASKED)
                    : KafkaFuture.completedFuture(TopicAnswers.description(topic, expected.partitions)));
            }
            return TopicAnswers.described(answers);
        }

        @Override
        public Object createTopics(final Admin admin, final Collection<NewTopic> topics) {
            for (final NewTopic topic : topics) {
                found.put(topic.name(), new ExpectedTopic(topic.name(), topic.numPartitions(), topic.replicationFactor(),
                    topic.configs() == null ? Collections.emptyMap() : topic.configs()));
            }
            throw new AbortedAssignment(false);
        }

        @Override
        public void otherRequest() {
            throw new AbortedAssignment(true);
        }
    }

    /** Ends an assignment that only records. */
    private static final class AbortedAssignment extends RuntimeException {
        private static final long serialVersionUID = 1L;

        private final boolean isComplete;

        AbortedAssignment(final boolean isComplete) {
            super("Not an error: the expected topics are recorded.", null, false, false);
            this.isComplete = isComplete;
        }
    }
}
