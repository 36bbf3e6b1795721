package io.headwater.streams;

import org.apache.kafka.clients.admin.CreateTopicsResult;
import org.apache.kafka.clients.admin.DescribeTopicsResult;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.internals.KafkaFutureImpl;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Builds answers of an {@code Admin}. */
final class TopicAnswers {
    private TopicAnswers() {
    }

    static DescribeTopicsResult described(final Map<String, KafkaFuture<TopicDescription>> futures) {
        return new Described(futures);
    }

    static CreateTopicsResult created(final Map<String, KafkaFuture<CreateTopicsResult.TopicMetadataAndConfig>> futures) {
        return new Created(futures);
    }

    static <T> KafkaFuture<T> failed(final Throwable error) {
        final KafkaFutureImpl<T> future = new KafkaFutureImpl<>();
        future.completeExceptionally(error);
        return future;
    }

    static TopicDescription description(final String topic, final int partitions) {
        final List<TopicPartitionInfo> infos = new ArrayList<>();
        for (int partition = 0; partition < partitions; partition++) {
            infos.add(new TopicPartitionInfo(partition, null, Collections.emptyList(), Collections.emptyList()));
        }
        return new TopicDescription(topic, false, infos);
    }

    private static final class Described extends DescribeTopicsResult {
        Described(final Map<String, KafkaFuture<TopicDescription>> futures) {
            super(null, futures);
        }
    }

    private static final class Created extends CreateTopicsResult {
        Created(final Map<String, KafkaFuture<CreateTopicsResult.TopicMetadataAndConfig>> futures) {
            super(futures);
        }
    }
}
