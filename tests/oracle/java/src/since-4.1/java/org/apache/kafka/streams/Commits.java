package org.apache.kafka.streams;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.streams.processor.internals.StreamTask;

import java.util.Map;

/** A method whose parameter 4.1 added. */
final class Commits {
    private Commits() {
    }

    static Map<TopicPartition, OffsetAndMetadata> prepare(final StreamTask task) {
        return task.prepareCommit(true);
    }
}
