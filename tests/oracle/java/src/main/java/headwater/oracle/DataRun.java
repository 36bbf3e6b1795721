package headwater.oracle;

import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.DriverInsides;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.TopologyTestDriver;
import org.apache.kafka.streams.errors.StreamsException;
import org.apache.kafka.streams.test.TestRecord;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeSet;
import java.util.stream.Stream;

/**
 * Processes records with a document's topology and the test driver: one partition per topic, no cache, no throttling. An input is a record, or `advance`:
 * milliseconds by which the clock advances.
 */
final class DataRun {
    private static final String APPLICATION = "app";

    private DataRun() {
    }

    /** Records in: `{topic, key, value, timestamp, headers}`, texts. Records out, of all topics: `{after, topic, key, value, timestamp, headers}`, base 64. */
    static List<Object> records(final Map<String, Object> document, final List<Object> inputs) throws IOException {
        final Path folder = Files.createTempDirectory("headwater-oracle");
        final Properties properties = properties(document, folder);
        final Topology topology = Oracle.build(document, APPLICATION);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, properties, Instant.EPOCH)) {
            final List<Object> outputs = new ArrayList<>();
            final Map<String, TestInputTopic<byte[], byte[]>> topics = new HashMap<>();
            for (int after = 0; after < inputs.size(); after++) {
                final Call record = new Call("record", Call.mapping(inputs.get(after)));
                if (record.has("advance")) {
                    driver.advanceWallClockTime(record.duration("advance"));
                    collect(driver, after, outputs);
                    continue;
                }
                topics.computeIfAbsent(record.text("topic"),
                        topic -> driver.createInputTopic(topic, new ByteArraySerializer(), new ByteArraySerializer()))
                    .pipeInput(new TestRecord<>(
                        bytes(record.text("key")), bytes(record.text("value")), headers(record), record.number("timestamp")));
                collect(driver, after, outputs);
            }
            return outputs;
        } catch (final StreamsException error) {
            throw new Died(error);
        } finally {
            delete(folder);
        }
    }

    /**
     * Records in, as those of {@link #records}, by batch; a batch is committed at once. The record caches have {@code cacheBytes} bytes, and are empty
     * when a batch begins. Records out: `after` is the number of the batch.
     */
    static List<Object> batches(final Map<String, Object> document, final List<Object> batches, final long cacheBytes) throws IOException {
        final Path folder = Files.createTempDirectory("headwater-oracle");
        final Properties properties = properties(document, folder);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        final Map<String, Object> application = new HashMap<>(Call.mapping(document.get("application")));
        final Map<String, Object> config = new HashMap<>(Call.configs(Call.mapping(application.get("config"))));
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        application.put("config", config);
        final Map<String, Object> cached = new HashMap<>(document);
        cached.put("application", application);
        try (TopologyTestDriver driver = new TopologyTestDriver(Oracle.build(cached, APPLICATION), properties, Instant.EPOCH)) {
            final DriverInsides insides = new DriverInsides(driver);
            final List<Object> outputs = new ArrayList<>();
            for (int batch = 0; batch < batches.size(); batch++) {
                for (final Object each : (List<?>) batches.get(batch)) {
                    final Call record = new Call("record", Call.mapping(each));
                    insides.enqueue(
                        record.text("topic"), record.number("timestamp"), bytes(record.text("key")), bytes(record.text("value")), headers(record));
                }
                insides.process();
                insides.clearCaches();
                collect(driver, batch, outputs);
            }
            return outputs;
        } catch (final StreamsException error) {
            throw new Died(error);
        } finally {
            delete(folder);
        }
    }

    /** The exception that stops the running application, with its root cause. */
    private static final class Died extends RuntimeException {
        Died(final StreamsException error) {
            super(error.getMessage() + ": " + deepest(error));
        }

        private static Throwable deepest(final Throwable error) {
            return error.getCause() == null ? error : deepest(error.getCause());
        }
    }

    private static void collect(final TopologyTestDriver driver, final int after, final List<Object> outputs) {
        for (final String topic : new TreeSet<>(driver.producedTopicNames())) {
            for (final TestRecord<byte[], byte[]> record
                : driver.createOutputTopic(topic, new ByteArrayDeserializer(), new ByteArrayDeserializer()).readRecordsToList()) {
                final Map<String, Object> output = new HashMap<>();
                output.put("after", after);
                output.put("topic", topic);
                output.put("key", encoded(record.key()));
                output.put("value", encoded(record.value()));
                output.put("timestamp", record.timestamp());
                output.put("headers", shown(record.headers()));
                outputs.add(output);
            }
        }
    }

    private static Properties properties(final Map<String, Object> document, final Path folder) {
        final Properties properties = Oracle.properties(document, APPLICATION);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, TextSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, TextSerde.class);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        properties.put("__emit.interval.ms.kstreams.windowed.aggregation__", 0);
        properties.put("__emit.interval.ms.kstreams.outer.join.spurious.results.fix__", 0);
        return properties;
    }

    private static Headers headers(final Call record) {
        final RecordHeaders headers = new RecordHeaders();
        for (final String header : record.texts("headers")) {
            headers.add(header, bytes(header));
        }
        return headers;
    }

    private static List<Object> shown(final Headers headers) {
        final List<Object> names = new ArrayList<>();
        headers.forEach(header -> names.add(header.key()));
        return names;
    }

    private static byte[] bytes(final String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    private static String encoded(final byte[] bytes) {
        return bytes == null ? null : Base64.getEncoder().encodeToString(bytes);
    }

    private static void delete(final Path folder) throws IOException {
        try (Stream<Path> files = Files.walk(folder)) {
            files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
        }
    }
}
