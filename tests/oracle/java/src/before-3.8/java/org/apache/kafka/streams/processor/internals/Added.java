package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.streams.TopologyDescription;

import java.lang.reflect.Field;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/** What 3.8 added methods for, read from a description and from a private field. */
final class Added {
    private Added() {
    }

    static Set<String> stateStores(final InternalTopologyBuilder builder, final int subtopology) {
        final Set<String> stores = new HashSet<>();
        for (final TopologyDescription.Subtopology part : builder.describe().subtopologies()) {
            for (final TopologyDescription.Node node : part.nodes()) {
                if (part.id() == subtopology && node instanceof TopologyDescription.Processor) {
                    stores.addAll(((TopologyDescription.Processor) node).stores());
                }
            }
        }
        return stores;
    }

    static Set<String> missingSourceTopics(final RepartitionTopics topics) {
        try {
            final Field field = RepartitionTopics.class.getDeclaredField("missingInputTopicsBySubtopology");
            field.setAccessible(true);
            final Set<String> missing = new TreeSet<>();
            ((Map<?, ?>) field.get(topics)).values().forEach(names -> ((Set<?>) names).forEach(name -> missing.add((String) name)));
            return missing;
        } catch (final ReflectiveOperationException error) {
            throw new LinkageError("RepartitionTopics has changed", error);
        }
    }
}
