import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.Properties;

/**
 * Kafka Streams as a compared program of a benchmark: one JVM that runs one application after the other.
 *
 * <p>A line of standard input is a request, {@code {"operator": "map" | "count", "subtopologies": …, "chains": [[source, sink], …], "config": {…}}}, and
 * starts an application; an empty line ends it. Standard output: {@code ready} for the JVM, {@code closed} for each application that has ended,
 * {@code failed: …} for an exception.
 */
public final class Peer {
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(60);

    private Peer() {
    }

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final ObjectMapper json = new ObjectMapper();
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            run(json.readTree(line), input);
            System.out.println("closed");
        }
    }

    private static void run(final JsonNode request, final BufferedReader input) throws Exception {
        final Path state = Files.createTempDirectory("peer");
        try (KafkaStreams application = new KafkaStreams(topology(request), properties(request, state))) {
            application.setUncaughtExceptionHandler(error -> {
                System.out.println("failed: " + error);
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            application.start();
            input.readLine();
            application.close(CLOSE_TIMEOUT);
        } finally {
            Utils.delete(state.toFile());
        }
    }

    private static Properties properties(final JsonNode request, final Path state) {
        final Properties properties = new Properties();
        request.get("config").fields().forEachRemaining(each -> properties.put(each.getKey(), each.getValue().asText()));
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, state.toString());
        return properties;
    }

    private static Topology topology(final JsonNode request) {
        final StreamsBuilder builder = new StreamsBuilder();
        for (final JsonNode chain : request.get("chains")) {
            final KStream<String, String> source = builder.stream(chain.get(0).asText());
            final String sink = chain.get(1).asText();
            if (request.get("operator").asText().equals("count")) {
                source.groupByKey().count(Materialized.as("counts")).toStream().to(sink, Produced.with(Serdes.String(), Serdes.Long()));
            } else {
                mapped(source, request.get("subtopologies").asInt()).to(sink);
            }
        }
        return builder.build();
    }

    private static KStream<String, String> mapped(final KStream<String, String> source, final int subtopologies) {
        KStream<String, String> rows = source.mapValues(value -> value.toUpperCase(Locale.ROOT));
        for (int number = 1; number < subtopologies; number++) {
            rows = rows.repartition().mapValues(value -> value.toUpperCase(Locale.ROOT));
        }
        return rows;
    }
}
