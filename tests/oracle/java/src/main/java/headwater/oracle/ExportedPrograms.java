package headwater.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyDescription;
import org.apache.kafka.streams.TopologyInsides;
import org.apache.kafka.streams.processor.internals.StartedTopology;

import java.io.File;
import java.io.IOException;
import java.io.InputStream;
import java.lang.reflect.Method;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.TreeSet;

/**
 * Runs a program of Kafka until it constructs KafkaStreams, and writes what Kafka Streams and the library make of its topology.
 *
 * <p>Arguments: the file to write, the class, and its arguments. The file is {@code {"exported", "describe", "insides", "runs":
 * [{"partitions", "protocol", "counts", …}]}}.
 */
public final class ExportedPrograms {
    private static final String REPLACED = "org.apache.kafka.streams.KafkaStreams";
    private static final String STUB = "org/apache/kafka/streams/KafkaStreamZ";
    private static final int[] FIRST_COUNTS = {4, 3};

    private ExportedPrograms() {
    }

    public static void main(final String[] arguments) throws Exception {
        System.setProperty("exported.programs.answer", arguments[0]);
        final List<URL> urls = new ArrayList<>();
        for (final String entry : System.getProperty("java.class.path").split(File.pathSeparator)) {
            urls.add(new File(entry).toURI().toURL());
        }
        final ClassLoader loader = new Loader(urls.toArray(new URL[0]));
        Thread.currentThread().setContextClassLoader(loader);
        final Method main = loader.loadClass(arguments[1]).getMethod("main", String[].class);
        main.invoke(null, (Object) Arrays.copyOfRange(arguments, 2, arguments.length));
        Runtime.getRuntime().halt(1);
    }

    /** Writes the answer for a topology that a program gave to KafkaStreams, and ends the program. */
    public static void report(final Topology topology, final Properties properties) {
        int code = 1;
        try {
            final Map<String, Object> answer = answer(topology, properties);
            Files.writeString(Path.of(System.getProperty("exported.programs.answer")), new ObjectMapper().writeValueAsString(answer));
            code = 0;
        } catch (final Exception | LinkageError error) {
            error.printStackTrace();
        }
        Runtime.getRuntime().halt(code);
    }

    private static Map<String, Object> answer(final Topology topology, final Properties properties) throws Exception {
        final Map<String, Object> answer = new HashMap<>();
        final Method text = Class.forName("io.headwater.streams.topology.TopologyDocument").getMethod("text", Topology.class, Map.class);
        answer.put("exported", text.invoke(null, topology, properties));
        answer.put("describe", topology.describe().toString());
        final StartedTopology started = new StartedTopology(TopologyInsides.builderOf(topology), new StreamsConfig(properties));
        answer.put("insides", started.insides());
        final List<Object> runs = new ArrayList<>();
        for (final int first : FIRST_COUNTS) {
            final Map<String, Integer> partitions = partitions(topology, first);
            for (final String protocol : List.of("classic", "streams")) {
                final Map<String, Object> run = new HashMap<>();
                run.put("partitions", partitions);
                run.put("protocol", protocol);
                try {
                    run.putAll("streams".equals(protocol) ? Broker.counts(started, partitions) : started.countsOfClassicLeader(partitions));
                } catch (final NotAvailable error) {
                    continue;
                } catch (final RuntimeException error) {
                    run.put("error", Map.of("class", error.getClass().getName(), "message", String.valueOf(error.getMessage()), "stage", "assign"));
                }
                runs.add(run);
            }
        }
        answer.put("runs", runs);
        return answer;
    }

    /** Returns counts of the topics that the topology reads: the same for all, or different ones if the first count is odd. */
    private static Map<String, Integer> partitions(final Topology topology, final int first) {
        final TreeSet<String> read = new TreeSet<>();
        final TopologyDescription description = topology.describe();
        description.globalStores().forEach(store -> read.addAll(topics(store.source())));
        description.subtopologies().forEach(part -> part.nodes().forEach(node -> {
            if (node instanceof TopologyDescription.Source) {
                read.addAll(topics((TopologyDescription.Source) node));
            }
        }));
        final Map<String, Integer> partitions = new TreeMap<>();
        for (final String topic : read) {
            partitions.put(topic, first % 2 == 0 ? first : first + partitions.size());
        }
        return partitions;
    }

    private static TreeSet<String> topics(final TopologyDescription.Source source) {
        final TreeSet<String> topics = new TreeSet<>();
        if (source.topicSet() != null) {
            source.topicSet().stream().filter(topic -> !isInternal(topic)).forEach(topics::add);
        }
        return topics;
    }

    private static boolean isInternal(final String topic) {
        return topic.endsWith("-repartition") || topic.contains("-FK-JOIN-") && topic.endsWith("-topic");
    }

    /** Loads all classes of the class path itself, so that programs get the other KafkaStreams. */
    private static final class Loader extends URLClassLoader {
        Loader(final URL[] urls) {
            super(urls, ClassLoader.getPlatformClassLoader());
        }

        @Override
        protected Class<?> findClass(final String name) throws ClassNotFoundException {
            if (!name.equals(REPLACED)) {
                return super.findClass(name);
            }
            try (InputStream stream = getResourceAsStream(STUB + ".class")) {
                final String stub = new String(stream.readAllBytes(), StandardCharsets.ISO_8859_1);
                final byte[] bytes = stub.replace(STUB, REPLACED.replace('.', '/')).getBytes(StandardCharsets.ISO_8859_1);
                return defineClass(name, bytes, 0, bytes.length);
            } catch (final IOException error) {
                throw new ClassNotFoundException(name, error);
            }
        }
    }
}
