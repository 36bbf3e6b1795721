package io.headwater.streams.topology;

import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.regex.Pattern;

/**
 * What a topology consists of, as mappings and lists in the form of a document.
 *
 * <p>The source is {@code InternalTopologyBuilder}, which a topology has from its construction: neither a config nor a
 * started application is necessary, and the topology is not changed. Topic names have no application id here.
 */
final class BuiltTopology {
    private static final String STATIC_EXTRACTOR = "StaticTopicNameExtractor";

    private final Topology topology;
    private final Object builder;
    private final Map<?, ?> nodes;
    private final Map<String, Integer> groups = new HashMap<>();
    private final Set<Integer> globalGroups = new HashSet<>();
    private final Set<String> sources = new HashSet<>();
    private final Set<String> readTopics = new HashSet<>();
    private final Map<String, Set<String>> users = new HashMap<>();

    BuiltTopology(final Topology topology) {
        this.topology = topology;
        this.builder = Internals.field(topology, "internalTopologyBuilder");
        this.nodes = (Map<?, ?>) Internals.field(builder, "nodeFactories");
        readGroups();
    }

    /** Returns the name of a named topology, which is in the names of its internal topics; null for others. */
    String name() {
        return (String) Internals.call(builder, "topologyName");
    }

    private void readGroups() {
        final TopologyDescription description = topology.describe();
        for (final TopologyDescription.Subtopology part : description.subtopologies()) {
            part.nodes().forEach(node -> groups.put(node.name(), part.id()));
        }
        for (final TopologyDescription.GlobalStore store : description.globalStores()) {
            groups.put(store.source().name(), store.id());
            groups.put(store.processor().name(), store.id());
            globalGroups.add(store.id());
        }
    }

    /** Returns sub-topology id → its nodes in the order in which they were added. */
    Map<String, Object> subtopologies() {
        final Map<Integer, Map<String, Object>> parts = new TreeMap<>();
        nodes.forEach((name, factory) -> {
            final Map<String, Object> part = parts.computeIfAbsent(groups.get(name), ignored -> new LinkedHashMap<>());
            part.put((String) name, node((String) name, factory));
        });
        final Map<String, Object> written = new LinkedHashMap<>();
        parts.forEach((id, members) -> {
            final Map<String, Object> part = new LinkedHashMap<>();
            if (globalGroups.contains(id)) {
                part.put("global", true);
            }
            part.put("nodes", members);
            written.put(String.valueOf(id), part);
        });
        return written;
    }

    private Map<String, Object> node(final String name, final Object factory) {
        final Map<String, Object> node = new LinkedHashMap<>();
        final String type = factory.getClass().getSimpleName();
        if (type.equals("SourceNodeFactory")) {
            sources.add(name);
            final Pattern pattern = (Pattern) Internals.field(factory, "pattern");
            if (pattern == null) {
                final List<?> topics = (List<?>) Internals.field(factory, "topics");
                topics.forEach(topic -> readTopics.add((String) topic));
                node.put("source", topics);
            } else {
                node.put("pattern", withFlags(pattern));
            }
            return node;
        }
        node.put("parents", List.of((Object[]) (String[]) Internals.field(factory, "predecessors")));
        if (type.equals("SinkNodeFactory")) {
            sink(factory, node);
        } else {
            final Collection<?> stores = (Collection<?>) Internals.field(factory, "stateStoreNames");
            stores.forEach(store -> users.computeIfAbsent((String) store, ignored -> new TreeSet<>()).add(name));
            if (!stores.isEmpty()) {
                node.put("stores", new ArrayList<>(stores));
            }
        }
        return node;
    }

    private static void sink(final Object factory, final Map<String, Object> node) {
        final Object extractor = Internals.field(factory, "topicExtractor");
        if (extractor.getClass().getSimpleName().equals(STATIC_EXTRACTOR)) {
            node.put("sink", Internals.field(extractor, "topicName"));
        } else {
            node.put("extractor", className(extractor));
        }
        final Object partitioner = Internals.field(factory, "partitioner");
        if (partitioner != null) {
            node.put("partitioner", className(partitioner));
        }
    }

    /** Returns the regular expression with its flags inside, as far as Java can write them so. */
    private static String withFlags(final Pattern pattern) {
        final int[] flags = {Pattern.CASE_INSENSITIVE, Pattern.UNIX_LINES, Pattern.MULTILINE, Pattern.DOTALL,
            Pattern.UNICODE_CASE, Pattern.COMMENTS, Pattern.UNICODE_CHARACTER_CLASS};
        final StringBuilder letters = new StringBuilder();
        for (int index = 0; index < flags.length; index++) {
            if ((pattern.flags() & flags[index]) != 0) {
                letters.append("idmsuxU".charAt(index));
            }
        }
        final String text = (pattern.flags() & Pattern.LITERAL) != 0 ? Pattern.quote(pattern.pattern()) : pattern.pattern();
        // `(?i)` at the beginning of a pattern has set the flag, too.
        return letters.length() == 0 || text.startsWith("(?" + letters + ")") ? text : "(?" + letters + ")" + text;
    }

    /** Returns the name of a class; the generated part of the name of a lambda's class is not the same in each run. */
    static String className(final Object object) {
        final String name = object.getClass().getName();
        final int lambda = name.indexOf("$$Lambda");
        return lambda < 0 ? name : name.substring(0, lambda) + " (lambda)";
    }

    /** Returns repartition topic → its explicit partition count, if it has one. */
    Map<String, Object> repartitionTopics() {
        final Map<String, Object> topics = new TreeMap<>();
        ((Map<?, ?>) Internals.field(builder, "internalTopicNamesWithProperties")).forEach((name, properties) -> {
            final Object count = Internals.field(properties, "numberOfPartitions");
            topics.put((String) name, count == null ? Map.of() : Map.of("partitions", count));
        });
        return topics;
    }

    /** Returns the groups of source nodes whose topics must have equal partition counts, in the order of registration. */
    List<Object> copartitioned() {
        final List<Object> written = new ArrayList<>();
        for (final Object group : (Collection<?>) Internals.field(builder, "copartitionSourceGroups")) {
            final Set<String> known = new TreeSet<>();
            ((Collection<?>) group).stream().filter(sources::contains).forEach(name -> known.add((String) name));
            if (!known.isEmpty()) {
                written.add(new ArrayList<>(known));
            }
        }
        return written;
    }

    /** Returns store → what decides its changelog; call it after {@link #subtopologies}. */
    Map<String, Object> stores() {
        final Map<String, Object> stores = new TreeMap<>();
        ((Map<?, ?>) Internals.field(builder, "globalStateBuilders")).forEach((name, factory) -> stores.put((String) name, store(factory)));
        final Map<?, ?> changelogs = (Map<?, ?>) Internals.field(builder, "storeToChangelogTopic");
        ((Map<?, ?>) Internals.field(builder, "stateFactories")).forEach((name, factory) -> {
            final Map<String, Object> store = store(factory);
            final Object topic = changelogs.get(name);
            // An own changelog is registered when a task is built, and has a name with the application id.
            if (topic != null && readTopics.contains((String) topic)) {
                store.remove("logging");
                store.put("sourceTopic", topic);
            }
            final Set<String> owners = new TreeSet<>();
            ((Collection<?>) Internals.call(factory, "connectedProcessorNames")).forEach(owner -> owners.add((String) owner));
            if (!owners.containsAll(users.getOrDefault((String) name, Set.of()))) {
                store.put("owners", new ArrayList<>(owners));
            }
            stores.put((String) name, store);
        });
        return stores;
    }

    private static Map<String, Object> store(final Object factory) {
        final Map<String, Object> store = new LinkedHashMap<>();
        if ((Boolean) Internals.call(factory, "isVersionedStore")) {
            store.put("kind", "versioned");
            store.put("retention", Internals.call(factory, "historyRetention"));
        } else if ((Boolean) Internals.call(factory, "isWindowStore")) {
            store.put("kind", "windowed");
            store.put("retention", Internals.call(factory, "retentionPeriod"));
        } else {
            store.put("kind", "keyValue");
        }
        if (!(Boolean) Internals.call(factory, "loggingEnabled")) {
            store.put("logging", false);
            return store;
        }
        final Map<String, Object> overrides = new TreeMap<>();
        ((Map<?, ?>) Internals.call(factory, "logConfig")).forEach((key, value) -> overrides.put((String) key, String.valueOf(value)));
        if (!overrides.isEmpty()) {
            store.put("overrides", overrides);
        }
        return store;
    }
}
