import org.apache.kafka.common.serialization.*;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.*;
import org.apache.kafka.streams.kstream.*;
import org.apache.kafka.streams.state.*;
import java.lang.reflect.*;
import java.time.Duration;
import java.util.*;
import java.util.function.*;

/**
 * Builds topologies with any Kafka Streams of 2.5 to 3.9, and prints texts, internal topics and co-partition groups as JSON.
 *
 * <p>It calls only methods that all of these versions have, and reads their insides by reflection. See record.py.
 */
public final class OlderVersions {
    private static final Map<String, Consumer<StreamsBuilder>> CASES = new LinkedHashMap<>();

    private static Consumed<String, String> c() {
        return Consumed.with(Serdes.String(), Serdes.String());
    }

    private static KStream<String, String> s(final StreamsBuilder b, final String topic) {
        return b.stream(topic, c());
    }

    private static KTable<String, String> t(final StreamsBuilder b, final String topic) {
        return b.table(topic, c());
    }

    static {
        CASES.put("stateless", b -> s(b, "a").mapValues(v -> v).filter((k, v) -> true).to("out"));
        CASES.put("count", b -> s(b, "a").groupByKey().count());
        CASES.put("count_rekeyed", b -> s(b, "a").selectKey((k, v) -> v).groupByKey().count());
        CASES.put("count_named", b -> s(b, "a").groupBy((k, v) -> v, Grouped.as("by")).count(Named.as("counted"), Materialized.as("counts")));
        CASES.put("count_overrides", b -> s(b, "a").groupByKey().count(Materialized.<String, Long, KeyValueStore<Bytes, byte[]>>as("counts").withLoggingEnabled(Collections.singletonMap("cleanup.policy", "delete"))));
        CASES.put("tumbling", b -> s(b, "a").groupByKey().windowedBy(TimeWindows.of(Duration.ofHours(1)).grace(Duration.ofMinutes(5))).count(Materialized.as("w")));
        CASES.put("tumbling_default_grace", b -> s(b, "a").groupByKey().windowedBy(TimeWindows.of(Duration.ofHours(1))).count(Materialized.as("w")));
        CASES.put("hopping_long", b -> s(b, "a").groupByKey().windowedBy(TimeWindows.of(Duration.ofDays(3)).advanceBy(Duration.ofHours(1))).count());
        CASES.put("session", b -> s(b, "a").groupByKey().windowedBy(SessionWindows.with(Duration.ofMinutes(5)).grace(Duration.ofMinutes(1))).count(Materialized.as("se")));
        CASES.put("session_default_grace", b -> s(b, "a").groupByKey().windowedBy(SessionWindows.with(Duration.ofMinutes(5))).count());
        CASES.put("reduce", b -> s(b, "a").groupByKey().reduce((x, y) -> y).toStream().to("out"));
        CASES.put("aggregate", b -> s(b, "a").groupByKey().aggregate(() -> "", (k, v, g) -> g));
        CASES.put("table", b -> t(b, "a"));
        CASES.put("table_named", b -> b.table("a", Consumed.<String, String>as("tab"), Materialized.as("store")));
        CASES.put("table_filter", b -> t(b, "a").filter((k, v) -> true, Materialized.as("f")));
        CASES.put("table_suppress", b -> t(b, "a").suppress(Suppressed.untilTimeLimit(Duration.ofSeconds(1), Suppressed.BufferConfig.unbounded())).toStream().to("out"));
        CASES.put("window_suppress", b -> s(b, "a").groupByKey().windowedBy(TimeWindows.of(Duration.ofHours(1)).grace(Duration.ofMinutes(5))).count().suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded()).withName("late")).toStream().to("out"));
        CASES.put("to_table", b -> s(b, "a").toTable());
        CASES.put("to_table_rekeyed", b -> s(b, "a").selectKey((k, v) -> v).toTable(Named.as("tt")));
        CASES.put("table_group_by", b -> t(b, "a").groupBy((k, v) -> KeyValue.pair(v, k), Grouped.with(Serdes.String(), Serdes.String())).count());
        CASES.put("table_group_by_named", b -> t(b, "a").groupBy((k, v) -> KeyValue.pair(v, k), Grouped.with("by", Serdes.String(), Serdes.String())).count(Materialized.as("counts")));
        CASES.put("join_streams", b -> s(b, "a").join(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5)).grace(Duration.ofMinutes(1))));
        CASES.put("join_streams_default_grace", b -> s(b, "a").join(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5))));
        CASES.put("join_streams_named", b -> s(b, "a").join(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5)), StreamJoined.<String, String, String>as("st").withName("j")));
        CASES.put("left_join_streams", b -> s(b, "a").leftJoin(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5)).grace(Duration.ofMinutes(1))));
        CASES.put("outer_join_streams", b -> s(b, "a").outerJoin(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5)).grace(Duration.ofMinutes(1))));
        CASES.put("outer_join_streams_named", b -> s(b, "a").outerJoin(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5)), StreamJoined.<String, String, String>as("st").withName("j")));
        CASES.put("self_join", b -> { KStream<String, String> a = s(b, "a"); a.join(a, (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5))); });
        CASES.put("join_streams_rekeyed", b -> s(b, "a").selectKey((k, v) -> v).join(s(b, "b").selectKey((k, v) -> v), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5))));
        CASES.put("join_supplied", b -> s(b, "a").join(s(b, "b"), (x, y) -> x, JoinWindows.of(Duration.ofMinutes(5)).grace(Duration.ZERO), StreamJoined.with(Stores.inMemoryWindowStore("l", Duration.ofMinutes(10), Duration.ofMinutes(10), true), Stores.inMemoryWindowStore("r", Duration.ofMinutes(10), Duration.ofMinutes(10), true))));
        CASES.put("stream_table", b -> s(b, "a").join(t(b, "b"), (x, y) -> x));
        CASES.put("stream_table_rekeyed", b -> s(b, "a").selectKey((k, v) -> v).leftJoin(t(b, "b"), (x, y) -> x, Joined.as("j")));
        CASES.put("stream_global", b -> s(b, "a").join(b.globalTable("b", c()), (k, v) -> k, (x, y) -> x));
        CASES.put("global_named", b -> b.globalTable("b", c(), Materialized.as("g")));
        CASES.put("table_table", b -> t(b, "a").join(t(b, "b"), (x, y) -> x));
        CASES.put("table_table_named", b -> t(b, "a").outerJoin(t(b, "b"), (x, y) -> x, Named.as("j"), Materialized.as("joined")));
        CASES.put("foreign_key", b -> t(b, "a").join(t(b, "b"), v -> v, (x, y) -> x, Materialized.with(Serdes.String(), Serdes.String())));
        CASES.put("foreign_key_left_named", b -> t(b, "a").leftJoin(t(b, "b"), v -> v, (x, y) -> x, Named.as("fk"), Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("joined").withKeySerde(Serdes.String()).withValueSerde(Serdes.String())));
        CASES.put("cogroup", b -> s(b, "a").groupByKey().<String>cogroup((k, v, g) -> g).cogroup(s(b, "b").groupByKey(), (k, v, g) -> g).aggregate(() -> ""));
        CASES.put("cogroup_rekeyed", b -> s(b, "a").groupBy((k, v) -> v).<String>cogroup((k, v, g) -> g).cogroup(s(b, "b").groupByKey(), (k, v, g) -> g).aggregate(() -> "", Materialized.as("agg")));
        CASES.put("cogroup_windowed", b -> s(b, "a").groupByKey().<String>cogroup((k, v, g) -> g).windowedBy(TimeWindows.of(Duration.ofMinutes(5))).aggregate(() -> ""));
        CASES.put("merge", b -> s(b, "a").selectKey((k, v) -> v).merge(s(b, "b")).groupByKey().count());
        CASES.put("two_counts", b -> { KStream<String, String> a = s(b, "a").selectKey((k, v) -> v); a.groupByKey().count(); a.groupByKey().reduce((x, y) -> y); });
        CASES.put("shared_group", b -> { KGroupedStream<String, String> a = s(b, "a").selectKey((k, v) -> v).groupByKey(Grouped.as("g")); a.count(); a.reduce((x, y) -> y); });
        CASES.put("through_values", b -> s(b, "a").transformValues(() -> new ValueTransformer<String, String>() {
            public void init(org.apache.kafka.streams.processor.ProcessorContext context) { }
            public String transform(String v) { return v; }
            public void close() { } }).to("out"));
        CASES.put("branch", b -> { KStream<String, String>[] parts = s(b, "a").branch((k, v) -> true, (k, v) -> false); parts[0].to("x"); parts[1].groupByKey().count(); });
        CASES.put("same_topic", b -> { s(b, "a").to("x"); t(b, "b").toStream().to("y"); s(b, "a").groupByKey().count(); });
        CASES.put("flat", b -> s(b, "a").flatMap((k, v) -> Collections.singletonList(KeyValue.pair(v, v))).groupByKey().count());
        CASES.put("peek_print", b -> s(b, "a").peek((k, v) -> { }).foreach((k, v) -> { }));
        CASES.put("pattern", b -> b.stream(java.util.regex.Pattern.compile("p.*"), c()).groupByKey().count());
        CASES.put("sliding", b -> sliding(b));
        CASES.put("repartition", b -> repartition(b, null));
        CASES.put("repartition_named", b -> repartition(b, "wide"));
    }

    /** Sliding windows exist since 2.7. */
    @SuppressWarnings("unchecked")
    private static void sliding(final StreamsBuilder b) {
        try {
            final Class<?> type = Class.forName("org.apache.kafka.streams.kstream.SlidingWindows");
            final Object windows = type.getMethod("withTimeDifferenceAndGrace", Duration.class, Duration.class)
                .invoke(null, Duration.ofMinutes(5), Duration.ofMinutes(1));
            final Method windowedBy = KGroupedStream.class.getMethod("windowedBy", type);
            ((TimeWindowedKStream<String, String>) windowedBy.invoke(s(b, "a").groupByKey(), windows)).count();
        } catch (final ReflectiveOperationException error) {
            throw new UnsupportedOperationException(error);
        }
    }

    /** An explicit repartition exists since 2.6. */
    @SuppressWarnings("unchecked")
    private static void repartition(final StreamsBuilder b, final String name) {
        try {
            final Class<?> type = Class.forName("org.apache.kafka.streams.kstream.Repartitioned");
            Object repartitioned = type.getMethod("numberOfPartitions", int.class).invoke(null, 3);
            if (name != null) {
                repartitioned = type.getMethod("withName", String.class).invoke(repartitioned, name);
            }
            final Method repartition = KStream.class.getMethod("repartition", type);
            ((KStream<String, String>) repartition.invoke(s(b, "a"), repartitioned)).groupByKey().count();
        } catch (final ReflectiveOperationException error) {
            throw new UnsupportedOperationException(error);
        }
    }

    public static void main(final String[] arguments) {
        final Map<String, Object> all = new LinkedHashMap<>();
        for (final String optimization : new String[] {"none", "all"}) {
            CASES.forEach((name, calls) -> all.put(name + "-" + optimization, built(calls, optimization)));
        }
        System.out.println(json(all));
    }

    private static Map<String, Object> built(final Consumer<StreamsBuilder> calls, final String optimization) {
        final Map<String, Object> built = new HashMap<>();
        try {
            final Properties properties = new Properties();
            properties.put("application.id", "app");
            properties.put("bootstrap.servers", "nowhere:1");
            properties.put("topology.optimization", optimization);
            properties.put("default.key.serde", Serdes.String().getClass().getName());
            properties.put("default.value.serde", Serdes.String().getClass().getName());
            final StreamsBuilder builder = new StreamsBuilder();
            calls.accept(builder);
            final Topology topology = builder.build(properties);
            built.put("describe", topology.describe().toString());
            addInsides(built, field(topology, "internalTopologyBuilder"), new StreamsConfig(properties));
        } catch (final UnsupportedOperationException error) {
            built.put("missing", "true");
        } catch (final InvocationTargetException error) {
            built.put("error", String.valueOf(error.getCause()));
        } catch (final Exception error) {
            built.put("error", String.valueOf(error));
        }
        return built;
    }

    /** Adds the internal topics with their configs, and the co-partition groups. */
    @SuppressWarnings("unchecked")
    private static void addInsides(final Map<String, Object> built, final Object builder, final StreamsConfig config) throws Exception {
        method(builder, "rewriteTopology", 1).invoke(builder, config);
        final Method build = method(builder, "buildTopology", 0);
        if (build != null) {
            build.invoke(builder); // since 2.6 it connects stores with their changelogs
        }
        final Method named = method(builder, "subtopologyToTopicsInfo", 0);
        final Method groups = named == null ? method(builder, "topicGroups", 0) : named;
        final Map<String, Object> topics = new TreeMap<>();
        for (final Object info : ((Map<?, ?>) groups.invoke(builder)).values()) {
            for (final String kind : new String[] {"repartitionSourceTopics", "stateChangelogTopics"}) {
                for (final Map.Entry<?, ?> topic : ((Map<?, ?>) field(info, kind)).entrySet()) {
                    topics.put(String.valueOf(topic.getKey()), configOf(topic.getValue(), config));
                }
            }
        }
        built.put("topics", topics);
        final List<Object> groupsOfTopics = new ArrayList<>();
        for (final Object group : (Collection<?>) method(builder, "copartitionGroups", 0).invoke(builder)) {
            groupsOfTopics.add(new TreeSet<>((Collection<String>) group));
        }
        groupsOfTopics.sort(Comparator.comparing(Object::toString));
        built.put("copartitioned", groupsOfTopics);
    }

    private static Object configOf(final Object topicConfig, final StreamsConfig config) throws Exception {
        final Method old = method(topicConfig, "getProperties", 2);
        final Method properties = old == null ? method(topicConfig, "properties", 2) : old;
        return properties.invoke(
            topicConfig, new HashMap<String, String>(), config.getLong("windowstore.changelog.additional.retention.ms"));
    }

    private static Object field(final Object object, final String name) throws Exception {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (final Field field : type.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field.get(object);
                }
            }
        }
        throw new NoSuchFieldException(name);
    }

    /** Returns null if no class of the object declares the method. */
    private static Method method(final Object object, final String name, final int parameters) {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            for (final Method method : type.getDeclaredMethods()) {
                if (method.getName().equals(name) && method.getParameterCount() == parameters) {
                    method.setAccessible(true);
                    return method;
                }
            }
        }
        return null;
    }

    private static String json(final Object value) {
        if (value instanceof Map) {
            final Map<String, Object> sorted = new TreeMap<>();
            ((Map<?, ?>) value).forEach((key, each) -> sorted.put(String.valueOf(key), each));
            final StringJoiner joined = new StringJoiner(", ", "{", "}");
            sorted.forEach((key, each) -> joined.add(quoted(key) + ": " + json(each)));
            return joined.toString();
        }
        if (value instanceof Collection) {
            final StringJoiner joined = new StringJoiner(", ", "[", "]");
            ((Collection<?>) value).forEach(each -> joined.add(json(each)));
            return joined.toString();
        }
        return value instanceof Number || value == null ? String.valueOf(value) : quoted(value);
    }

    private static String quoted(final Object value) {
        final String escaped = String.valueOf(value).replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
        return "\"" + escaped + "\"";
    }
}
