package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.errors.MissingSourceTopicException;
import org.apache.kafka.streams.errors.StreamsException;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/**
 * An application that is built and never started. Its assignor answers which internal topics it expects; no group is
 * joined, and no state directory is used.
 */
final class ColdStart implements AutoCloseable {
    private static final String MEMBER = "initialize";

    private final TopologyDescription description;
    private final Path stateFolder;
    private final ColdClients clients;
    private final KafkaStreams application;

    ColdStart(final Topology topology, final Properties properties) {
        description = topology.describe();
        try {
            stateFolder = Files.createTempDirectory("headwater-initialize");
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
        final Properties changed = new Properties();
        properties.stringPropertyNames().forEach(name -> changed.put(name, properties.getProperty(name)));
        changed.putAll(properties);
        changed.put("state.dir", stateFolder.toString());
        changed.put("num.stream.threads", "1");
        changed.remove("group.protocol");
        changed.remove("metric.reporters");
        clients = new ColdClients(changed);
        application = new KafkaStreams(topology, changed, clients);
    }

    /** Returns the client of the cluster. */
    Admin admin() {
        return clients.context().admin;
    }

    /**
     * Returns the internal topics of the application.
     *
     * @throws MissingSourceTopicException if a source topic does not exist
     */
    List<ExpectedTopic> expectedTopics(final long timeoutMs) {
        final Set<String> sources = new TreeSet<>();
        final Set<String> sinks = new HashSet<>();
        readTopology(sources, sinks, timeoutMs);
        final List<PartitionInfo> partitions = new ArrayList<>();
        final Set<String> found = new HashSet<>();
        describe(sources, timeoutMs).forEach((name, count) -> {
            found.add(name);
            for (int partition = 0; partition < count; partition++) {
                partitions.add(new PartitionInfo(name, partition, Node.noNode(), new Node[0], new Node[0]));
            }
        });
        final InternalTopicsAssignor assignor = clients.assignor();
        final ByteBuffer data = assignor.subscriptionUserData(found);
        final Cluster cluster = new Cluster(
            "cluster", List.of(Node.noNode()), partitions, Set.of(), Set.of(), Set.of(), Node.noNode());
        final List<ExpectedTopic> expected = assignor.expectedTopics(
            cluster, new GroupSubscription(Map.of(MEMBER, new Subscription(new ArrayList<>(found), data))));
        if (expected == null) {
            sources.removeAll(found);
            sources.removeAll(sinks);
            throw new MissingSourceTopicException("Missing source topics: " + String.join(", ", sources) + ".");
        }
        return expected;
    }

    private void readTopology(final Set<String> sources, final Set<String> sinks, final long timeoutMs) {
        Set<String> listed = null;
        for (final TopologyDescription.Subtopology subtopology : description.subtopologies()) {
            for (final TopologyDescription.Node node : subtopology.nodes()) {
                if (node instanceof TopologyDescription.Sink && ((TopologyDescription.Sink) node).topic() != null) {
                    sinks.add(((TopologyDescription.Sink) node).topic());
                }
                if (!(node instanceof TopologyDescription.Source)) {
                    continue;
                }
                final TopologyDescription.Source source = (TopologyDescription.Source) node;
                if (source.topicSet() != null) {
                    sources.addAll(source.topicSet());
                }
                if (source.topicPattern() != null) {
                    listed = listed == null ? listTopics(timeoutMs) : listed;
                    listed.stream().filter(topic -> source.topicPattern().matcher(topic).matches()).forEach(sources::add);
                }
            }
        }
    }

    private Set<String> listTopics(final long timeoutMs) {
        return await(admin().listTopics().names(), timeoutMs);
    }

    private Map<String, Integer> describe(final Set<String> topics, final long timeoutMs) {
        final Map<String, Integer> counts = new java.util.TreeMap<>();
        admin().describeTopics(topics).topicNameValues().forEach((name, future) -> {
            try {
                counts.put(name, this.<TopicDescription>await(future, timeoutMs).partitions().size());
            } catch (final UnknownTopicOrPartitionException missing) {
                // reported by the assignor
            }
        });
        return counts;
    }

    private <T> T await(final KafkaFuture<T> future, final long timeoutMs) {
        try {
            return future.get(timeoutMs, TimeUnit.MILLISECONDS);
        } catch (final ExecutionException error) {
            if (error.getCause() instanceof RuntimeException) {
                throw (RuntimeException) error.getCause();
            }
            throw new StreamsException(error.getCause());
        } catch (final InterruptedException error) {
            throw new InterruptException(error);
        } catch (final java.util.concurrent.TimeoutException error) {
            throw new TimeoutException("The Kafka cluster did not answer in time.", error);
        }
    }

    @Override
    public void close() {
        application.close(Duration.ofSeconds(10));
        clients.close();
        try {
            Utils.delete(stateFolder.toFile());
        } catch (final IOException error) {
            throw new UncheckedIOException(error);
        }
    }
}
