package headwater.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyConfig;
import org.apache.kafka.streams.TopologyInsides;
import org.apache.kafka.streams.processor.internals.StartedTopology;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.Callable;

/**
 * Builds topologies with the real Kafka Streams and describes them.
 *
 * <p>Each line of standard input is a request, each line of standard output its response, both JSON. The response to
 * {@code {"document": …, "topics": {topic: count}, "runs": [{"applicationId": …, "protocol": "classic" | "streams", "partitions": {topic: count}}]}}
 * is {@code {"describe", "insides", "runs": [{"counts", "tasks"}]}}; patterns match {@code topics}. An exception of Kafka Streams is
 * {@code "error": {"class", "message", "stage"}} instead of the failed part. The response to {@code {"document": …, "data": […]}} is that of
 * {@link DataRun}; so is that to {@code {"document": …, "batches": [[…]], "cacheBytes": …}}, which may have
 * {@code "groups": [[topic]]}. The response to {@code {"document": …, "topics": …, "stores": true}} is
 * {@code {"stores": {name: …}}} with what {@link StoreLayers} finds. The response to {@code {"document": …, "export": true}} is
 * {@code {"exported": …}}, the text of the library for applications. The response to {@code {"document": …, "write": file}} or
 * {@code {"document": …, "verify": file}} is empty, or {@code {"thrown": …}} if the library throws. The response to {@code {"topicConfigs": [{key: value}]}} is {@code {"table", "refusals"}} of {@link TopicConfigs}. The response to
 * {@code {"configKeys": true}} is {@code {"keys": […]}}.
 * {@code {"configTables": true}} is answered with the tables of {@link Configs}, {@code {"configs": [{key: value}]}} with {@code {"refusals"}}.
 */
public final class Oracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String LIBRARY = "io.headwater.streams.topology.TopologyDocument";

    private Oracle() {
    }

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(JSON.writeValueAsString(answer(Call.mapping(JSON.readValue(line, Map.class)))));
        }
    }

    private static Map<String, Object> answer(final Map<String, Object> request) {
        if (request.containsKey("configs")) {
            return Map.of("refusals", Configs.refusals(new Call("configs", request).list("configs")));
        }
        if (request.containsKey("configTables")) {
            return Configs.tables();
        }
        if (request.containsKey("topicConfigs")) {
            return Map.of("table", TopicConfigs.table(), "refusals", TopicConfigs.refusals(new Call("topic configs", request).list("topicConfigs")));
        }
        if (request.containsKey("configKeys")) {
            return Map.of("keys", ConfigKeys.all());
        }
        final Map<String, Object> document = Call.mapping(request.get("document"));
        final String applicationId = String.valueOf(Call.mapping(document.get("application")).get("id"));
        final Map<String, Object> answer = new HashMap<>();
        if (request.containsKey("batches")) {
            guarded(answer, "data", () -> {
                final Call cached = new Call("batches", request);
                answer.put("records", request.containsKey("groups")
                    ? DataRun.rounds(document, cached.list("batches"), cached.list("groups"), cached.number("cacheBytes"))
                    : DataRun.batches(document, cached.list("batches"), cached.number("cacheBytes")));
                return null;
            });
            return answer;
        }
        if (request.containsKey("data")) {
            guarded(answer, "data", () -> {
                answer.put("records", DataRun.records(document, new Call("data", request).list("data")));
                return null;
            });
            return answer;
        }
        for (final String method : List.of("write", "verify")) {
            if (request.containsKey(method)) {
                guarded(answer, "build", () -> {
                    final Topology topology = build(document, applicationId);
                    final Path path = Path.of(String.valueOf(request.get(method)));
                    try {
                        Class.forName(LIBRARY).getMethod(method, Topology.class, Map.class, Path.class)
                            .invoke(null, topology, properties(document, applicationId), path);
                    } catch (final InvocationTargetException error) {
                        answer.put("thrown", error.getCause().getMessage());
                    }
                    return null;
                });
                return answer;
            }
        }
        if (Boolean.TRUE.equals(request.get("export"))) {
            guarded(answer, "build", () -> {
                answer.put("exported", exported(document, applicationId));
                return null;
            });
            return answer;
        }
        if (Boolean.TRUE.equals(request.get("stores"))) {
            guarded(answer, "start", () -> {
                final Map<String, Object> stores = new TreeMap<>();
                start(document, applicationId, partitions(request.get("topics"))).stores()
                    .forEach((name, store) -> stores.put(name, StoreLayers.of(store)));
                answer.put("stores", stores);
                return null;
            });
            return answer;
        }
        guarded(answer, "build", () -> {
            answer.put("describe", build(document, applicationId).describe().toString());
            return null;
        });
        if (!answer.containsKey("error")) {
            guarded(answer, "start", () -> {
                answer.put("insides", start(document, applicationId, partitions(request.get("topics"))).insides());
                return null;
            });
        }
        final List<Object> runs = new ArrayList<>();
        for (final Object run : new Call("runs", request).list("runs")) {
            runs.add(run(document, new Call("run", Call.mapping(run))));
        }
        answer.put("runs", runs);
        return answer;
    }

    /** Returns the document that the library for applications writes; it is the same after the application was constructed. */
    private static String exported(final Map<String, Object> document, final String applicationId) throws Exception {
        final Topology topology = build(document, applicationId);
        final Properties properties = properties(document, applicationId);
        final Method text = Class.forName(LIBRARY).getMethod("text", Topology.class, Map.class);
        final String before = (String) text.invoke(null, topology, properties);
        final StartedTopology started = new StartedTopology(TopologyInsides.builderOf(topology), new StreamsConfig(properties));
        started.stores();
        final String after = (String) text.invoke(null, topology, properties);
        if (!before.equals(after)) {
            throw new IllegalStateException("The start has changed the export:\n" + before + "\n---\n" + after);
        }
        return before;
    }

    private static Map<String, Object> run(final Map<String, Object> document, final Call run) {
        final Map<String, Integer> partitions = partitions(run.options().get("partitions"));
        final Map<String, Object> answer = new HashMap<>();
        guarded(answer, "start", () -> {
            final StartedTopology started = start(document, run.text("applicationId"), partitions);
            guarded(answer, "assign", () -> {
                answer.putAll("streams".equals(run.text("protocol"))
                    ? Broker.counts(started, partitions) : started.countsOfClassicLeader(partitions));
                return null;
            });
            return null;
        });
        return answer;
    }

    private static Map<String, Integer> partitions(final Object given) {
        final Map<String, Integer> partitions = new HashMap<>();
        Call.mapping(given).forEach((topic, count) -> partitions.put(topic, ((Number) count).intValue()));
        return partitions;
    }

    private static StartedTopology start(
        final Map<String, Object> document, final String applicationId, final Map<String, Integer> partitions
    ) {
        final StartedTopology started = new StartedTopology(
            TopologyInsides.builderOf(build(document, applicationId)), new StreamsConfig(properties(document, applicationId)));
        started.subscribe(partitions.keySet());
        return started;
    }

    static Topology build(final Map<String, Object> document, final String applicationId) {
        StoreOptions.forgetBuilders();
        final Properties properties = properties(document, applicationId);
        final StreamsBuilder builder = new StreamsBuilder(new TopologyConfig(new StreamsConfig(properties)));
        final List<Object> dsl = new ArrayList<>();
        final List<Call> processorApi = new ArrayList<>();
        for (final Object step : new Call("document", document).list("topology")) {
            final Call call = Call.of(Call.mapping(step));
            if (ProcessorApiCalls.owns(call)) {
                processorApi.add(call);
            } else if (call.operator().equals("addStateStore") && !processorApi.isEmpty()) {
                processorApi.add(call);
            } else {
                dsl.add(step);
            }
        }
        new DslCalls(builder).run(dsl, null);
        final Topology topology = builder.build(properties);
        final ProcessorApiCalls calls = new ProcessorApiCalls(topology);
        processorApi.forEach(calls::apply);
        return topology;
    }

    static Properties properties(final Map<String, Object> document, final String applicationId) {
        final Properties properties = new Properties();
        properties.putAll(Call.configs(Call.mapping(document.get("application")).get("config")));
        if (!properties.getProperty(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, ".").contains(".")) {
            properties.remove(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG); // the name of a format
        }
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, applicationId);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, "nowhere:1");
        return properties;
    }

    private static void guarded(final Map<String, Object> answer, final String stage, final Callable<Void> work) {
        try {
            work.call();
        } catch (final Exception | StackOverflowError error) {
            final Map<String, Object> thrown = new HashMap<>();
            thrown.put("class", error.getClass().getName());
            thrown.put("message", error.getMessage());
            thrown.put("stage", isOfRequest(error) ? "request" : stage);
            answer.put("error", thrown);
        }
    }

    /** Whether this program threw the exception, because a document is not one that it can build. */
    private static boolean isOfRequest(final Throwable error) {
        return error instanceof Call.BadRequest || error instanceof ClassCastException
            || error instanceof NullPointerException && error.getStackTrace().length > 0
            && error.getStackTrace()[0].getClassName().startsWith("headwater.");
    }
}
