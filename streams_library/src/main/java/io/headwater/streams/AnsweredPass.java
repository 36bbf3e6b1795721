package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.InterruptException;

import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/**
 * The pass in which tasks are assigned: topics are described as they are.
 *
 * <p>A broker may not know yet what another broker has answered a moment ago, so a topic is described with the partition
 * count that was checked. In manual mode nothing is created.
 */
final class AnsweredPass implements AdminPass {
    private final Map<String, Integer> counts;
    private final boolean isManual;

    AnsweredPass(final Map<String, Integer> counts, final boolean isManual) {
        this.counts = counts;
        this.isManual = isManual;
    }

    @Override
    public Object describeTopics(final Admin admin, final Collection<String> topics) {
        final Map<String, KafkaFuture<TopicDescription>> answers = new HashMap<>();
        admin.describeTopics(topics).topicNameValues().forEach((topic, future) -> answers.put(topic, answer(topic, future)));
        return TopicAnswers.described(answers);
    }

    private KafkaFuture<TopicDescription> answer(final String topic, final KafkaFuture<TopicDescription> future) {
        final Integer count = counts.get(topic);
        if (count == null) {
            return future;
        }
        try {
            final TopicDescription found = future.get();
            if (found.partitions().size() == count) {
                return future;
            } else if (found.partitions().size() > count) {
                return KafkaFuture.completedFuture(new TopicDescription(
                    topic, found.isInternal(), List.copyOf(found.partitions().subList(0, count))));
            }
        } catch (final ExecutionException error) {
            // answered as it was checked
        } catch (final InterruptedException error) {
            throw new InterruptException(error);
        }
        return KafkaFuture.completedFuture(TopicAnswers.description(topic, count));
    }

    @Override
    public Object createTopics(final Admin admin, final Collection<NewTopic> topics) {
        if (!isManual) {
            return admin.createTopics(topics);
        }
        final MissingInternalTopicsException missing = Reports.missing(
            topics.stream().map(NewTopic::name).collect(Collectors.toCollection(TreeSet::new)), List.of());
        final Map<String, KafkaFuture<CreateTopicsResult.TopicMetadataAndConfig>> answers = new HashMap<>();
        topics.forEach(topic -> answers.put(topic.name(), TopicAnswers.failed(missing)));
        return TopicAnswers.created(answers);
    }

    @Override
    public void otherRequest() {
        // sent to the cluster
    }
}
