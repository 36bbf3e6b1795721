package io.headwater.streams;

import org.apache.kafka.common.Uuid;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The differences between the internal topics that Kafka Streams expects and the topics of the cluster. */
final class TopicComparison {
    final List<String> missing;
    final List<String> recreated;
    final List<Count> tooFew;
    final List<Count> tooMany;
    final List<Misconfiguration> misconfigured;

    private TopicComparison(
        final List<String> missing, final List<String> recreated, final List<Count> tooFew, final List<Count> tooMany,
        final List<Misconfiguration> misconfigured
    ) {
        this.missing = Collections.unmodifiableList(missing);
        this.recreated = Collections.unmodifiableList(recreated);
        this.tooFew = Collections.unmodifiableList(tooFew);
        this.tooMany = Collections.unmodifiableList(tooMany);
        this.misconfigured = Collections.unmodifiableList(misconfigured);
    }

    /** Returns the differences in the order of the topics' names; {@code knownIds} are ids that were seen before. */
    static TopicComparison of(
        final Collection<ExpectedTopic> expected, final Map<String, ActualTopic> actual, final Map<String, Uuid> knownIds
    ) {
        final Map<String, ExpectedTopic> sorted = new TreeMap<>();
        expected.forEach(topic -> sorted.put(topic.name, topic));
        final List<String> missing = new ArrayList<>();
        final List<String> recreated = new ArrayList<>();
        final List<Count> tooFew = new ArrayList<>();
        final List<Count> tooMany = new ArrayList<>();
        final List<Misconfiguration> misconfigured = new ArrayList<>();
        for (final ExpectedTopic topic : sorted.values()) {
            final ActualTopic found = actual.get(topic.name);
            if (found == null) {
                missing.add(topic.name);
                continue;
            }
            if (!found.id.equals(knownIds.getOrDefault(topic.name, found.id))) {
                recreated.add(topic.name);
            }
            if (found.partitions < topic.partitions) {
                tooFew.add(new Count(topic.name, found.partitions, topic.partitions));
            } else if (found.partitions > topic.partitions) {
                tooMany.add(new Count(topic.name, found.partitions, topic.partitions));
            }
            misconfigured.addAll(ConfigRules.check(topic, found));
        }
        return new TopicComparison(missing, recreated, tooFew, tooMany, misconfigured);
    }

    boolean countsAreEqual() {
        return missing.isEmpty() && tooFew.isEmpty() && tooMany.isEmpty();
    }

    /** The partition count of a topic, and the count that it should have. */
    static final class Count {
        final String topic;
        final int found;
        final int expected;

        Count(final String topic, final int found, final int expected) {
            this.topic = topic;
            this.found = found;
            this.expected = expected;
        }

        @Override
        public String toString() {
            return topic + " has " + found + " partitions, expected " + expected;
        }
    }
}
