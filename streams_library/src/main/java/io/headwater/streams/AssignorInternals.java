package io.headwater.streams;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicLong;

/**
 * The few internals of Kafka Streams that have no public interface: the time of the next rebalance, and the source
 * topics of sub-topologies, for metrics. If a version has other ones, this is logged and the rest works.
 */
final class AssignorInternals {
    private static final Logger LOG = LoggerFactory.getLogger(AssignorInternals.class);
    private static final String CONTAINER = "__reference.container.instance__";

    private final Object container;

    private AssignorInternals(final Object container) {
        this.container = container;
    }

    static AssignorInternals of(final Map<String, ?> consumerConfigs) {
        return new AssignorInternals(consumerConfigs.get(CONTAINER));
    }

    /** Lets the stream thread of this member trigger a rebalance at a time. */
    void scheduleRebalance(final long atMs) {
        try {
            final AtomicLong next = (AtomicLong) field(container, "nextScheduledRebalanceMs");
            next.accumulateAndGet(atMs, Math::min);
        } catch (final ReflectiveOperationException | RuntimeException error) {
            LOG.warn("No follow-up rebalance was scheduled. Restart an instance to retry the expansion.", error);
        }
    }

    /** Returns sub-topology id → names of its source topics; empty if it cannot be read. */
    Map<String, Set<String>> sourceTopics() {
        try {
            final Object metadata = call(field(container, "taskManager"), "topologyMetadata");
            final Map<?, ?> groups = (Map<?, ?>) call(
                metadata, "subtopologyTopicsInfoMapExcluding", Set.class, Collections.emptySet());
            final Map<String, Set<String>> found = new TreeMap<>();
            for (final Map.Entry<?, ?> entry : groups.entrySet()) {
                final Object name = field(entry.getKey(), "namedTopology");
                final String id = (name == null ? "" : name + "__") + field(entry.getKey(), "nodeGroupId");
                final Set<String> topics = new HashSet<>();
                ((Set<?>) field(entry.getValue(), "sourceTopics")).forEach(topic -> topics.add(topic.toString()));
                found.put(id, topics);
            }
            return found;
        } catch (final ReflectiveOperationException | RuntimeException error) {
            LOG.warn("The metrics of sub-topologies are not available with this version of Kafka Streams.", error);
            return Collections.emptyMap();
        }
    }

    private static Object field(final Object owner, final String name) throws ReflectiveOperationException {
        final Field field = owner.getClass().getDeclaredField(name);
        open(field);
        return field.get(owner);
    }

    private static Object call(final Object owner, final String name) throws ReflectiveOperationException {
        final Method method = owner.getClass().getDeclaredMethod(name);
        open(method);
        return method.invoke(owner);
    }

    private static Object call(final Object owner, final String name, final Class<?> type, final Object argument)
        throws ReflectiveOperationException {
        final Method method = owner.getClass().getDeclaredMethod(name, type);
        open(method);
        return method.invoke(owner, argument);
    }

    private static void open(final AccessibleObject member) {
        member.setAccessible(true);
    }
}
