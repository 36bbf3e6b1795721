package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.streams.StreamsConfig;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.Map;

/** The sub-topologies that a client of the streams protocol sends to its broker; KafkaStreams refuses patterns. */
public final class SentTopology {
    private SentTopology() {
    }

    @SuppressWarnings("unchecked")
    public static Map<String, StreamsRebalanceData.Subtopology> of(final StartedTopology started) {
        if (started.usesPatterns()) {
            throw new UnsupportedOperationException("Pattern subscriptions are not supported with the STREAMS protocol.");
        }
        try {
            final Method method = StreamThread.class.getDeclaredMethod(
                "initBrokerTopology", StreamsConfig.class, InternalTopologyBuilder.class);
            method.setAccessible(true);
            return (Map<String, StreamsRebalanceData.Subtopology>) method.invoke(null, started.config(), started.builder());
        } catch (final InvocationTargetException error) {
            throw (RuntimeException) error.getCause();
        } catch (final ReflectiveOperationException error) {
            throw new LinkageError("StreamThread has changed", error);
        }
    }
}
