package io.headwater.streams;

import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupAssignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.streams.errors.StreamsException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/** One assignment of the group leader: checks the internal topics, then lets Kafka Streams assign the tasks. */
final class LeaderAssignment {
    private static final Logger LOG = LoggerFactory.getLogger(LeaderAssignment.class);
    private static final long MOST_READ_MS = 60_000;
    /** Time for expansions in one assignment if the application can continue without them. */
    private static final long BRIEFLY_MS = 10_000;

    private final LeaderContext context;
    private final ConsumerPartitionAssignor assignor;
    private final ExpectedTopics expectedTopics;
    private final AssignorInternals internals;
    /** Half of max.poll.interval.ms, as long as Kafka Streams waits for creations. */
    private final long longestMs;
    private boolean isFollowUpDue;
    private boolean isCompared;

    LeaderAssignment(
        final LeaderContext context, final ConsumerPartitionAssignor assignor, final ExpectedTopics expectedTopics,
        final AssignorInternals internals, final long longestMs
    ) {
        this.context = context;
        this.assignor = assignor;
        this.expectedTopics = expectedTopics;
        this.internals = internals;
        this.longestMs = longestMs;
    }

    /** Returns whether another assignment is necessary soon, because topics are not expanded yet. */
    boolean isFollowUpDue() {
        return isFollowUpDue;
    }

    GroupAssignment assign(final Cluster metadata, final GroupSubscription subscriptions) {
        final List<ExpectedTopic> expected = expectedTopics.find(metadata, subscriptions);
        if (expected == null) {
            return assignTasks(metadata, subscriptions, Map.of());
        }
        Map<String, ActualTopic> actual = ClusterTopics.read(
            context.admin, names(expected), context.config.isSetupGiven, Math.min(MOST_READ_MS, longestMs));
        final Map<String, Uuid> knownIds = knownIds(actual);
        TopicComparison found = TopicComparison.of(expected, actual, knownIds);
        checkExistence(found);
        rememberIds(actual, found);
        checkConfigs(found);
        final boolean isExpanded = !found.tooFew.isEmpty() && found.tooMany.isEmpty() && context.config.isAutoscaling;
        if (isExpanded || context.lastCounts.isEmpty()) {
            checkReshard(actual.keySet());
        }
        if (isExpanded) {
            final Expansion expansion = new Expansion(context, expected, actual);
            final CappedCluster capped = CappedCluster.find(context, expectedTopics, metadata, subscriptions, found, actual);
            final Expansion.Outcome outcome = expansion.run(
                capped == null ? longestMs : Math.min(BRIEFLY_MS, longestMs));
            actual = expansion.actual();
            if (outcome != Expansion.Outcome.DONE && capped != null) {
                return continueWith(capped, metadata, subscriptions, expected, outcome);
            }
            found = TopicComparison.of(expected, actual, context.topicIds);
            checkExistence(found);
        }
        return assignAll(metadata, subscriptions, expected, actual, found);
    }

    private GroupAssignment assignAll(
        final Cluster metadata, final GroupSubscription subscriptions, final List<ExpectedTopic> expected,
        final Map<String, ActualTopic> actual, final TopicComparison found
    ) {
        final Map<String, Integer> target = target(metadata, expected);
        final Map<String, Integer> answers = new HashMap<>();
        actual.values().forEach(topic -> answers.put(topic.name, topic.partitions));
        if (context.config.isManual && !found.countsAreEqual()) {
            throw Reports.miscounted(found);
        }
        try {
            final GroupAssignment assignment = assignTasks(metadata, subscriptions, answers);
            context.lastCounts = target;
            context.metrics.set(internals.sourceTopics(), target, target);
            return assignment;
        } catch (final StreamsException error) {
            if (error.getCause() instanceof MissingInternalTopicsException) {
                throw (MissingInternalTopicsException) error.getCause();
            }
            if (!found.tooFew.isEmpty() || !found.tooMany.isEmpty()) {
                throw new StreamsException(error.getMessage() + " " + Reports.counts(found), error);
            }
            throw error;
        }
    }

    /** Assigns the tasks that have all their partitions; the other ones follow when the topics are expanded. */
    private GroupAssignment continueWith(
        final CappedCluster capped, final Cluster metadata, final GroupSubscription subscriptions,
        final List<ExpectedTopic> expected, final Expansion.Outcome outcome
    ) {
        isFollowUpDue = outcome == Expansion.Outcome.NOT_YET;
        LOG.warn("Internal topics are not expanded yet. The application continues without the added partitions{}.",
            isFollowUpDue ? "; the next attempt follows in " + LeaderContext.FOLLOW_UP_MS / 1000 + " s" : "");
        final GroupAssignment assignment = assignTasks(capped.metadata, subscriptions, capped.internalCounts);
        final Map<String, Integer> now = ExpectedTopics.countsOf(capped.metadata);
        now.putAll(capped.internalCounts);
        context.metrics.set(internals.sourceTopics(), now, target(metadata, expected));
        return assignment;
    }

    private GroupAssignment assignTasks(
        final Cluster metadata, final GroupSubscription subscriptions, final Map<String, Integer> answers
    ) {
        return context.proxy.during(
            new AnsweredPass(answers, context.config.isManual), () -> assignor.assign(metadata, subscriptions));
    }

    private void checkExistence(final TopicComparison found) {
        if (context.config.isManual && !(found.missing.isEmpty() && found.recreated.isEmpty())) {
            throw Reports.missing(found.missing, found.recreated);
        }
        if (context.config.isSetupGiven) {
            if (!found.missing.isEmpty()) {
                LOG.warn("Internal topics do not exist, Kafka Streams creates them: {}. If the application has run before,"
                    + " their records are lost.", found.missing);
            }
            if (!found.recreated.isEmpty()) {
                LOG.warn("Internal topics were deleted and re-created, their records are lost: {}.", found.recreated);
            }
        }
    }

    /** At the last step of a reshard the counts are right, and entries may not have moved. */
    private void checkReshard(final Collection<String> topics) {
        final String application = context.config.applicationId;
        final long timeoutMs = Math.min(MOST_READ_MS, longestMs);
        if (ReshardJournal.exists(context.admin, application, changelogs(topics), timeoutMs)) {
            throw Reports.resharded(application);
        }
    }

    /**
     * Returns the ids of topics at the last check of this instance, else the ids that were recorded on the cluster.
     *
     * <p>A topic that is not known to either has no id here: it counts as the same topic from now on.
     */
    private Map<String, Uuid> knownIds(final Map<String, ActualTopic> actual) {
        final Map<String, Uuid> known = new HashMap<>(context.topicIds);
        if (context.config.isSetupGiven && !context.comparedTopics.containsAll(actual.keySet())) {
            final Map<String, Set<Uuid>> recorded = context.ownership.read(context.admin);
            isCompared = recorded != null;
            (isCompared ? recorded : Map.<String, Set<Uuid>>of()).forEach((topic, ids) -> {
                if (actual.containsKey(topic) && !ids.contains(actual.get(topic).id)) {
                    known.put(topic, ids.iterator().next());
                }
            });
        }
        return known;
    }

    private void rememberIds(final Map<String, ActualTopic> actual, final TopicComparison found) {
        actual.values().forEach(topic -> context.topicIds.put(topic.name, topic.id));
        if (isCompared) {
            context.comparedTopics.addAll(actual.keySet());
        }
        found.missing.forEach(context.topicIds::remove);
        found.missing.forEach(context.comparedTopics::remove);
    }

    private void checkConfigs(final TopicComparison found) {
        if (found.misconfigured.isEmpty()) {
            return;
        }
        if (context.config.isManual) {
            throw Reports.misconfigured(found.misconfigured);
        }
        Correction.apply(context.admin, found.misconfigured);
    }

    private static Map<String, Integer> target(final Cluster metadata, final List<ExpectedTopic> expected) {
        final Map<String, Integer> counts = ExpectedTopics.countsOf(metadata);
        expected.forEach(topic -> counts.put(topic.name, topic.partitions));
        return counts;
    }

    private static List<String> changelogs(final Collection<String> topics) {
        return topics.stream().filter(topic -> topic.endsWith("-changelog")).collect(Collectors.toList());
    }

    private static List<String> names(final List<ExpectedTopic> topics) {
        return topics.stream().map(topic -> topic.name).collect(Collectors.toList());
    }
}
