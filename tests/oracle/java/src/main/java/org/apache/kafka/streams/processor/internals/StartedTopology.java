package org.apache.kafka.streams.processor.internals;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.MissingSourceTopicException;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.processor.TaskId;
import org.apache.kafka.streams.processor.internals.InternalTopologyBuilder.TopicsInfo;
import org.apache.kafka.streams.processor.internals.TopologyMetadata.Subtopology;
import org.apache.kafka.streams.processor.internals.assignment.CopartitionedTopicsEnforcer;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.function.Predicate;
import java.util.regex.Pattern;

/** A topology with an application id, as the constructor of KafkaStreams makes it. One instance serves one start. */
public final class StartedTopology {
    private static final String PREFIX = "";

    private final InternalTopologyBuilder builder;
    private final StreamsConfig config;
    private final TopologyMetadata metadata;

    public StartedTopology(final InternalTopologyBuilder builder, final StreamsConfig config) {
        this.builder = builder;
        this.config = config;
        this.metadata = new TopologyMetadata(builder, config);
        metadata.buildAndRewriteTopology();
        Renamed.readThreads(metadata, config);
        builder.initializeSubscription();
    }

    /** Subscribes the consumer: the group leader gets these topics of the cluster. */
    public void subscribe(final Set<String> clusterTopics) {
        if (builder.usesPatternSubscription()) {
            final Predicate<String> subscribed = Pattern.compile(builder.sourceTopicPatternString()).asMatchPredicate();
            final Set<String> matched = new HashSet<>();
            clusterTopics.stream().filter(subscribed).forEach(matched::add);
            builder.addSubscribedTopicsFromMetadata(matched, PREFIX);
        }
    }

    /** Sub-topologies, co-partition groups and global stores, in the form of the recorded `subtopologies.json`. */
    public Map<String, Object> insides() {
        final List<Object> subtopologies = new ArrayList<>();
        builder.subtopologyToTopicsInfo().entrySet().stream()
            .sorted(Comparator.comparingInt(entry -> entry.getKey().nodeGroupId))
            .forEach(entry -> subtopologies.add(insidesOf(entry.getKey(), entry.getValue())));
        final List<Object> groups = new ArrayList<>();
        for (final Set<String> group : builder.copartitionGroups()) {
            groups.add(new TreeSet<>(group));
        }
        return Map.of(
            "subtopologies", subtopologies,
            "copartition_groups", groups,
            "global_stores", new TreeSet<>(builder.globalStateStores().keySet()));
    }

    /** Stores by name, as they are built for a task. */
    public Map<String, StateStore> stores() {
        final ProcessorTopology topology = builder.buildTopology();
        final Map<String, StateStore> stores = new TreeMap<>();
        topology.stateStores().forEach(store -> stores.put(store.name(), store));
        topology.globalStateStores().forEach(store -> stores.put(store.name(), store));
        return stores;
    }

    private Map<String, Object> insidesOf(final Subtopology id, final TopicsInfo info) {
        final Map<String, Object> repartitions = new TreeMap<>();
        info.repartitionSourceTopics.forEach((topic, topicConfig) -> {
            final Map<String, Object> entry = new HashMap<>();
            entry.put("enforced_partitions",
                topicConfig.hasEnforcedNumberOfPartitions() ? topicConfig.numberOfPartitions().orElseThrow() : null);
            entry.put("configs", configsOf(topicConfig));
            repartitions.put(topic, entry);
        });
        final Map<String, Object> changelogs = new TreeMap<>();
        info.stateChangelogTopics.forEach((topic, topicConfig) -> {
            final Map<String, Object> entry = new HashMap<>();
            entry.put("enforced_partitions", null);
            entry.put("configs", configsOf(topicConfig));
            changelogs.put(topic, entry);
        });
        final Map<String, Object> insides = new HashMap<>();
        insides.put("id", id.nodeGroupId);
        insides.put("source_topics", new TreeSet<>(info.sourceTopics));
        insides.put("sink_topics", new TreeSet<>(info.sinkTopics));
        insides.put("repartition_topics", repartitions);
        insides.put("changelog_topics", changelogs);
        insides.put("source_topic_changelogs", new TreeSet<>(info.sourceTopicChangelogs()));
        insides.put("state_stores", new TreeSet<>(Added.stateStores(builder, id.nodeGroupId)));
        return insides;
    }

    private Map<String, String> configsOf(final InternalTopicConfig topicConfig) {
        final Map<String, String> defaults = new HashMap<>();
        config.originalsWithPrefix(StreamsConfig.TOPIC_PREFIX).forEach((key, value) -> {
            if (value != null) {
                defaults.put(key, value.toString());
            }
        });
        return new TreeMap<>(Renamed.configs(
            topicConfig, defaults, config.getLong(StreamsConfig.WINDOW_STORE_CHANGE_LOG_ADDITIONAL_RETENTION_MS_CONFIG)));
    }

    /** Returns the decisions of the group leader's assignor (classic protocol): counts of internal topics, tasks of each sub-topology. */
    public Map<String, Object> countsOfClassicLeader(final Map<String, Integer> partitions) {
        final Cluster cluster = clusterOf(partitions);
        final RecordingTopicManager manager = new RecordingTopicManager(config);
        final RepartitionTopics repartitionTopics = new RepartitionTopics(
            metadata, manager, new CopartitionedTopicsEnforcer(PREFIX), cluster, PREFIX);
        repartitionTopics.setup();
        if (!repartitionTopics.missingSourceTopicExceptions().isEmpty()) {
            throw new MissingSourceTopicException("Missing source topics. " + new TreeSet<>(Added.missingSourceTopics(repartitionTopics)));
        }
        final Cluster full = cluster.withPartitions(repartitionTopics.topicPartitionsInfo());
        final Map<Subtopology, TopicsInfo> groups = metadata.subtopologyTopicsInfoMapExcluding(Collections.emptySet());
        final Map<Subtopology, Set<String>> sources = new HashMap<>();
        groups.forEach((subtopology, info) -> sources.put(subtopology, info.sourceTopics));
        final Map<Subtopology, Set<TaskId>> tasks = new HashMap<>();
        final Map<String, Object> taskCounts = new TreeMap<>();
        for (final TaskId task : new PartitionGrouper().partitionGroups(sources, full).keySet()) {
            tasks.computeIfAbsent(new Subtopology(task.subtopology(), task.topologyName()), ignored -> new HashSet<>()).add(task);
        }
        tasks.forEach((subtopology, ids) -> taskCounts.put(String.valueOf(subtopology.nodeGroupId), ids.size()));
        new ChangelogTopics(manager, groups, tasks, PREFIX).setup();
        return Map.of("counts", manager.counts, "tasks", taskCounts);
    }

    boolean usesPatterns() {
        return metadata.usesPatternSubscription();
    }

    StreamsConfig config() {
        return config;
    }

    InternalTopologyBuilder builder() {
        return builder;
    }

    private static Cluster clusterOf(final Map<String, Integer> partitions) {
        final Collection<PartitionInfo> infos = new ArrayList<>();
        partitions.forEach((topic, count) -> {
            for (int partition = 0; partition < count; partition++) {
                infos.add(new PartitionInfo(topic, partition, Node.noNode(), new Node[0], new Node[0]));
            }
        });
        return new Cluster("oracle", List.of(Node.noNode()), infos, Set.of(), Set.of());
    }

    /** Simulates a cluster without internal topics that accepts every creation. */
    private static final class RecordingTopicManager extends InternalTopicManager {
        private final Map<String, Object> counts = new TreeMap<>();

        RecordingTopicManager(final StreamsConfig config) {
            super(Time.SYSTEM, null, config);
        }

        @Override
        public Set<String> makeReady(final Map<String, InternalTopicConfig> topics) {
            topics.forEach((name, topic) -> counts.put(name, topic.numberOfPartitions().orElse(-1)));
            return topics.keySet();
        }
    }
}
