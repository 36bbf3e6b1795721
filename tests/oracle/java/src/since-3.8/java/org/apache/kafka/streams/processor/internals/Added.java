package org.apache.kafka.streams.processor.internals;

import java.util.Set;

/** Methods that 3.8 added. */
final class Added {
    private Added() {
    }

    static Set<String> stateStores(final InternalTopologyBuilder builder, final int subtopology) {
        return builder.stateStoreNamesForSubtopology(subtopology);
    }

    static Set<String> missingSourceTopics(final RepartitionTopics topics) {
        return topics.missingSourceTopics();
    }
}
