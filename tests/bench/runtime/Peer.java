import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.errors.SerializationException;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.JoinWindows;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.Stores;

import java.io.BufferedReader;
import java.io.IOException;
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
 * <p>A line of standard input is a request, {@code {"operator": …, "subtopologies": …, "chains": [[source, …, sink], …], "config": {…}}}, and
 * starts an application; an empty line ends it. Standard output: {@code ready} for the JVM, {@code closed} for each application that has ended,
 * {@code failed: …} for an exception.
 */
public final class Peer {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration ONE = Duration.ofSeconds(1);
    private static final Duration TWO = Duration.ofSeconds(2);
    private static final Duration THREE = Duration.ofSeconds(3);
    private static final Duration FIVE = Duration.ofSeconds(5);
    private static final Duration TEN = Duration.ofSeconds(10);
    private static final Duration MINUTE = Duration.ofMinutes(1);

    private Peer() {
    }

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        System.out.println("ready");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            run(JSON.readTree(line), input);
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
            final String source = chain.get(0).asText();
            final String sink = chain.get(chain.size() - 1).asText();
            final String other = chain.get(1).asText();
            switch (request.get("operator").asText()) {
                case "map":
                    mapped(builder.stream(source), request.get("subtopologies").asInt()).to(sink);
                    break;
                case "count":
                    grouped(builder, source).count(Materialized.as("counts")).toStream().to(sink, Produced.with(Serdes.String(), Serdes.Long()));
                    break;
                case "reduce":
                    grouped(builder, source).reduce((total, value) -> value.compareTo(total) > 0 ? value : total, Materialized.as("largest"))
                        .toStream().to(sink);
                    break;
                case "aggregate to JSON":
                    grouped(builder, source).aggregate(() -> total(0, ""), (key, value, total) -> total(total.get("count").asInt() + 1, largest(value, total)),
                        Materialized.<String, JsonNode, KeyValueStore<Bytes, byte[]>>as("totals").withValueSerde(jsonSerde()))
                        .toStream().to(sink, Produced.with(Serdes.String(), jsonSerde()));
                    break;
                case "processor with a store":
                    builder.addStateStore(Stores.keyValueStoreBuilder(Stores.persistentKeyValueStore("lengths"), Serdes.String(), Serdes.Long()));
                    builder.<String, String>stream(source).process(TextLengths::new, "lengths").to(sink, Produced.with(Serdes.String(), Serdes.Long()));
                    break;
                case "tumbling":
                    written(grouped(builder, source).windowedBy(TimeWindows.ofSizeAndGrace(TEN, MINUTE)).count(Materialized.as("counts")), sink);
                    break;
                case "hopping":
                    written(grouped(builder, source).windowedBy(TimeWindows.ofSizeAndGrace(TEN, MINUTE).advanceBy(TWO)).count(Materialized.as("counts")), sink);
                    break;
                case "sliding":
                    written(grouped(builder, source).windowedBy(SlidingWindows.ofTimeDifferenceAndGrace(THREE, MINUTE)).count(Materialized.as("counts")), sink);
                    break;
                case "session":
                    grouped(builder, source).windowedBy(SessionWindows.ofInactivityGapAndGrace(THREE, MINUTE)).count(Materialized.as("counts"))
                        .toStream().to(sink, Produced.with(WindowedSerdes.sessionWindowedSerdeFrom(String.class), Serdes.Long()));
                    break;
                case "suppress":
                    written(grouped(builder, source).windowedBy(TimeWindows.ofSizeAndGrace(TEN, FIVE)).count(Materialized.as("counts"))
                        .suppress(Suppressed.untilWindowCloses(Suppressed.BufferConfig.unbounded())), sink);
                    break;
                case "stream-stream join":
                    builder.<String, String>stream(source).join(builder.<String, String>stream(other), (left, right) -> left + "+" + right,
                        JoinWindows.ofTimeDifferenceAndGrace(ONE, MINUTE)).to(sink);
                    break;
                case "stream-table join":
                    builder.<String, String>stream(source).join(builder.<String, String>table(other, Materialized.as("t")), (left, right) -> left + "+" + right).to(sink);
                    break;
                case "stream-global table join":
                    builder.<String, String>stream(source).join(builder.<String, String>globalTable(other, Materialized.as("t")), (key, value) -> key,
                        (left, right) -> left + "+" + right).to(sink);
                    break;
                case "table-table join":
                    builder.<String, String>table(source).join(builder.<String, String>table(other, Materialized.as("right")),
                        (left, right) -> left + "+" + right).toStream().to(sink);
                    break;
                case "foreign-key join":
                    builder.<String, String>table(source).join(builder.<String, String>table(other, Materialized.as("right")),
                        value -> "key-" + Integer.parseInt(value.substring(6)) % 1000, (left, right) -> left + "+" + right).toStream().to(sink);
                    break;
                case "eight operators":
                    written(builder.<String, String>stream(source)
                        .filter((key, value) -> value.length() > 7)
                        .mapValues(value -> value.toUpperCase(Locale.ROOT))
                        .leftJoin(builder.<String, String>table(other, Materialized.as("t")), (left, right) -> left + "+" + (right == null ? "" : right))
                        .selectKey((key, value) -> key + "-" + value.substring(value.length() - 1))
                        .groupByKey()
                        .windowedBy(TimeWindows.ofSizeAndGrace(TEN, MINUTE))
                        .count(Materialized.as("counts"))
                        .filter((key, value) -> value % 2 == 1), sink);
                    break;
                default:
                    throw new IllegalArgumentException("unknown operator: " + request.get("operator"));
            }
        }
        return builder.build();
    }

    private static final class TextLengths implements Processor<String, String, String, Long> {
        private ProcessorContext<String, Long> context;
        private KeyValueStore<String, Long> lengths;

        @Override
        public void init(final ProcessorContext<String, Long> context) {
            this.context = context;
            lengths = context.getStateStore("lengths");
        }

        @Override
        public void process(final Record<String, String> record) {
            final Long before = lengths.get(record.key());
            final long length = (before == null ? 0 : before) + record.value().length();
            lengths.put(record.key(), length);
            context.forward(record.withValue(length));
        }
    }

    private static JsonNode total(final int count, final String largest) {
        return JSON.createObjectNode().put("count", count).put("largest", largest);
    }

    private static String largest(final String value, final JsonNode total) {
        final String before = total.get("largest").asText();
        return value.compareTo(before) > 0 ? value : before;
    }

    private static Serde<JsonNode> jsonSerde() {
        return Serdes.serdeFrom((topic, value) -> {
            try {
                return value == null ? null : JSON.writeValueAsBytes(value);
            } catch (final IOException error) {
                throw new SerializationException(error);
            }
        }, (topic, bytes) -> {
            try {
                return bytes == null ? null : JSON.readTree(bytes);
            } catch (final IOException error) {
                throw new SerializationException(error);
            }
        });
    }

    private static KGroupedStream<String, String> grouped(final StreamsBuilder builder, final String source) {
        return builder.<String, String>stream(source).groupByKey(Grouped.with(Serdes.String(), Serdes.String()));
    }

    private static void written(final KTable<Windowed<String>, Long> counts, final String sink) {
        counts.toStream().to(sink, Produced.with(WindowedSerdes.timeWindowedSerdeFrom(String.class, TEN.toMillis()), Serdes.Long()));
    }

    private static KStream<String, String> mapped(final KStream<String, String> source, final int subtopologies) {
        KStream<String, String> rows = source.mapValues(value -> value.toUpperCase(Locale.ROOT));
        for (int number = 1; number < subtopologies; number++) {
            rows = rows.repartition().mapValues(value -> value.toUpperCase(Locale.ROOT));
        }
        return rows;
    }
}
