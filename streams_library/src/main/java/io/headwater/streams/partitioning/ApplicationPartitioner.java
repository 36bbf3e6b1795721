package io.headwater.streams.partitioning;

import org.apache.kafka.clients.producer.Partitioner;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.processor.StreamPartitioner;

import java.lang.reflect.Constructor;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;

/**
 * The partitioner of an application: a {@code StreamPartitioner} of Kafka Streams, or a {@code Partitioner} of its producers.
 *
 * <p>It receives null as value: entries of stores do not have the values of the records.
 */
final class ApplicationPartitioner {
    private static final Map<String, Supplier<Serde<?>>> SERDES = Map.of(
        "string", Serdes::String, "long", Serdes::Long, "integer", Serdes::Integer, "short", Serdes::Short, "double", Serdes::Double,
        "float", Serdes::Float, "boolean", Serdes::Boolean, "uuid", Serdes::UUID, "bytes", Serdes::ByteArray
    );

    private final Object partitioner;
    private final Deserializer<?> deserializer;
    private final Map<String, Cluster> clusters = new HashMap<>();

    /**
     * Creates the partitioner, and the deserializer of its keys, and configures both.
     *
     * @param keySerde the name of a serde of Kafka, or the class of a {@code Serde} or a {@code Deserializer}
     * @throws UnusablePartitionerException if a class is not found or has another type
     */
    ApplicationPartitioner(final String className, final String keySerde, final Map<String, ?> configs) {
        partitioner = instance(className);
        deserializer = deserializer(keySerde, configs);
        if (partitioner instanceof Partitioner) {
            ((Partitioner) partitioner).configure(configs);
        } else if (!(partitioner instanceof StreamPartitioner)) {
            throw new UnusablePartitionerException(className + " is neither a StreamPartitioner of Kafka Streams nor a Partitioner of producers");
        }
    }

    /** Writes the partition of a serialized key for each of the counts to {@code found}. */
    void partition(final String topic, final byte[] key, final int[] counts, final int[] found) {
        final Object deserialized = deserializer.deserialize(topic, key);
        for (int index = 0; index < counts.length; index++) {
            found[index] = partition(topic, deserialized, key, counts[index]);
        }
    }

    @SuppressWarnings("unchecked")
    private int partition(final String topic, final Object key, final byte[] bytes, final int count) {
        if (partitioner instanceof Partitioner) {
            return ((Partitioner) partitioner).partition(topic, key, bytes, null, null, cluster(topic, count));
        }
        final Optional<Set<Integer>> found = ((StreamPartitioner<Object, Object>) partitioner).partitions(topic, key, null, count);
        if (found.isEmpty()) {
            // Kafka Streams leaves the record to the default partitioner of its producer.
            return Utils.toPositive(Utils.murmur2(bytes)) % count;
        }
        if (found.get().size() != 1) {
            throw new UnusablePartitionerException("it returned " + found.get().size() + " partitions for a key: " + found.get());
        }
        return found.get().iterator().next();
    }

    /** Returns what a producer knows of a cluster in which the topic has so many partitions. */
    private Cluster cluster(final String topic, final int count) {
        return clusters.computeIfAbsent(count + " " + topic, name -> {
            final Node node = new Node(0, "localhost", 9092);
            final Node[] replicas = {node};
            final List<PartitionInfo> partitions = new ArrayList<>();
            for (int partition = 0; partition < count; partition++) {
                partitions.add(new PartitionInfo(topic, partition, node, replicas, replicas));
            }
            return new Cluster("headwater", List.of(node), partitions, Set.of(), Set.of());
        });
    }

    private static Deserializer<?> deserializer(final String name, final Map<String, ?> configs) {
        final Object found = SERDES.containsKey(name) ? SERDES.get(name).get() : instance(name);
        if (found instanceof Serde) {
            // Kafka Streams configures the serde only, which may create its deserializer then.
            ((Serde<?>) found).configure(configs, true);
            return ((Serde<?>) found).deserializer();
        }
        if (found instanceof Deserializer) {
            ((Deserializer<?>) found).configure(configs, true);
            return (Deserializer<?>) found;
        }
        throw new UnusablePartitionerException(name + " is neither a Serde nor a Deserializer");
    }

    private static Object instance(final String className) {
        try {
            final Class<?> type = Class.forName(className, true, Thread.currentThread().getContextClassLoader());
            final Constructor<?> constructor = type.getDeclaredConstructor();
            constructor.setAccessible(true);
            return constructor.newInstance();
        } catch (final ClassNotFoundException error) {
            throw new UnusablePartitionerException("class " + className + " is not on the class path");
        } catch (final NoSuchMethodException error) {
            throw new UnusablePartitionerException(className + " has no constructor without parameters");
        } catch (final ReflectiveOperationException error) {
            final Throwable cause = error.getCause() == null ? error : error.getCause();
            throw new UnusablePartitionerException("an object of " + className + " cannot be created: " + Failures.describe(cause));
        }
    }
}
