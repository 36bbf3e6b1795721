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
public class OlderVersions {
    static final Map<String, Consumer<StreamsBuilder>> CASES = new LinkedHashMap<>();
    static Consumed<String, String> c() { return Consumed.with(Serdes.String(), Serdes.String()); }
    static KStream<String, String> s(StreamsBuilder b, String t) { return b.stream(t, c()); }
    static KTable<String, String> t(StreamsBuilder b, String t) { return b.table(t, c()); }
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
    @SuppressWarnings("unchecked")
    static void sliding(StreamsBuilder b) {
        try {
            Class<?> type = Class.forName("org.apache.kafka.streams.kstream.SlidingWindows");
            Object w = type.getMethod("withTimeDifferenceAndGrace", Duration.class, Duration.class).invoke(null, Duration.ofMinutes(5), Duration.ofMinutes(1));
            KGroupedStream<String, String> g = s(b, "a").groupByKey();
            Method m = KGroupedStream.class.getMethod("windowedBy", type);
            ((TimeWindowedKStream<String, String>) m.invoke(g, w)).count();
        } catch (ReflectiveOperationException e) { throw new UnsupportedOperationException(e); }
    }
    @SuppressWarnings("unchecked")
    static void repartition(StreamsBuilder b, String name) {
        try {
            Class<?> type = Class.forName("org.apache.kafka.streams.kstream.Repartitioned");
            Object r = type.getMethod("numberOfPartitions", int.class).invoke(null, 3);
            if (name != null) r = type.getMethod("withName", String.class).invoke(r, name);
            KStream<String, String> a = s(b, "a");
            Method m = KStream.class.getMethod("repartition", type);
            ((KStream<String, String>) m.invoke(a, r)).groupByKey().count();
        } catch (ReflectiveOperationException e) { throw new UnsupportedOperationException(e); }
    }
    static Object field(Object o, String name) throws Exception {
        for (Class<?> k = o.getClass(); k != null; k = k.getSuperclass()) {
            try { Field f = k.getDeclaredField(name); f.setAccessible(true); return f.get(o); } catch (NoSuchFieldException e) { }
        }
        throw new NoSuchFieldException(name);
    }
    static Method method(Object o, String name, int count) {
        for (Class<?> k = o.getClass(); k != null; k = k.getSuperclass())
            for (Method m : k.getDeclaredMethods()) if (m.getName().equals(name) && m.getParameterCount() == count) { m.setAccessible(true); return m; }
        return null;
    }
    static String q(Object o) { return "\"" + String.valueOf(o).replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n") + "\""; }
    static Map<String, Object> sorted(Map<?, ?> m) { Map<String, Object> r = new TreeMap<>(); m.forEach((k, v) -> r.put(String.valueOf(k), v)); return r; }
    static String json(Object o) {
        if (o instanceof Map) { StringJoiner j = new StringJoiner(", ", "{", "}"); sorted((Map<?, ?>) o).forEach((k, v) -> j.add(q(k) + ": " + json(v))); return j.toString(); }
        if (o instanceof Collection) { StringJoiner j = new StringJoiner(", ", "[", "]"); ((Collection<?>) o).forEach(v -> j.add(json(v))); return j.toString(); }
        if (o instanceof Number || o == null) return String.valueOf(o);
        return q(o);
    }
    @SuppressWarnings({"unchecked", "deprecation"})
    public static void main(String[] args) throws Exception {
        Map<String, Object> all = new LinkedHashMap<>();
        for (String optimization : new String[] {"none", "all"}) {
            for (Map.Entry<String, Consumer<StreamsBuilder>> e : CASES.entrySet()) {
                Map<String, Object> out = new HashMap<>();
                all.put(e.getKey() + "-" + optimization, out);
                try {
                    Properties p = new Properties();
                    p.put("application.id", "app"); p.put("bootstrap.servers", "x:1"); p.put("topology.optimization", optimization);
                    p.put("default.key.serde", Serdes.String().getClass().getName()); p.put("default.value.serde", Serdes.String().getClass().getName());
                    StreamsBuilder b = new StreamsBuilder();
                    e.getValue().accept(b);
                    Topology topology = b.build(p);
                    out.put("describe", topology.describe().toString());
                    Object builder = field(topology, "internalTopologyBuilder");
                    StreamsConfig config = new StreamsConfig(p);
                    Method rewrite = method(builder, "rewriteTopology", 1);
                    rewrite.invoke(builder, config);
                    Method build = method(builder, "buildTopology", 0);
                    if (build != null) build.invoke(builder);
                    Method groups = method(builder, "subtopologyToTopicsInfo", 0);
                    if (groups == null) groups = method(builder, "topicGroups", 0);
                    Map<String, Object> topics = new TreeMap<>();
                    long additional = config.getLong("windowstore.changelog.additional.retention.ms");
                    for (Object info : ((Map<?, ?>) groups.invoke(builder)).values()) {
                        for (String kind : new String[] {"repartitionSourceTopics", "stateChangelogTopics"}) {
                            for (Map.Entry<?, ?> topic : ((Map<?, ?>) field(info, kind)).entrySet()) {
                                Method properties = method(topic.getValue(), "getProperties", 2);
                                if (properties == null) properties = method(topic.getValue(), "properties", 2);
                                topics.put(String.valueOf(topic.getKey()), sorted((Map<?, ?>) properties.invoke(topic.getValue(), new HashMap<String, String>(), additional)));
                            }
                        }
                    }
                    out.put("topics", topics);
                    List<Object> copartition = new ArrayList<>();
                    for (Object g : (Collection<?>) method(builder, "copartitionGroups", 0).invoke(builder)) copartition.add(new TreeSet<>((Collection<String>) g));
                    copartition.sort(Comparator.comparing(Object::toString));
                    out.put("copartitioned", copartition);
                } catch (UnsupportedOperationException x) { out.put("missing", "true"); }
                catch (InvocationTargetException x) { out.put("error", String.valueOf(x.getCause())); }
                catch (Exception x) { out.put("error", String.valueOf(x)); }
            }
        }
        System.out.println(json(all));
    }
}
