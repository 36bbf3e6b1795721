package headwater.oracle;

import org.apache.kafka.clients.producer.ProducerRecord;
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
                        bytes(record.text("key")), value(record), headers(record), record.number("timestamp")));
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
        final Topology topology = Oracle.build(withCache(document, cacheBytes), APPLICATION);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, properties, Instant.EPOCH)) {
            final DriverInsides insides = new DriverInsides(driver);
            final List<Object> outputs = new ArrayList<>();
            for (int batch = 0; batch < batches.size(); batch++) {
                for (final Object each : (List<?>) batches.get(batch)) {
                    final Call record = new Call("record", Call.mapping(each));
                    insides.enqueue(
                        record.text("topic"), record.number("timestamp"), bytes(record.text("key")), value(record), headers(record));
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

    /**
     * Records in, as those of {@link #batches}, where a batch may be {@code [{"advance": …}]}. {@code groups} are the source topics of each sub-topology. The
     * records of a batch are processed in rounds: each sub-topology processes all records that wait for it as a batch of its own, which is committed; what
     * it writes waits for the next sub-topology that reads it. Offsets have gaps.
     */
    static List<Object> rounds(final Map<String, Object> document, final List<Object> batches, final List<Object> groups, final long cacheBytes) throws IOException {
        final Path folder = Files.createTempDirectory("headwater-oracle");
        final Properties properties = properties(document, folder);
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        final Topology topology = Oracle.build(withCache(document, cacheBytes), APPLICATION);
        try (TopologyTestDriver driver = new TopologyTestDriver(topology, properties, Instant.EPOCH)) {
            final Rounds rounds = new Rounds(new DriverInsides(driver), groups);
            for (int batch = 0; batch < batches.size(); batch++) {
                rounds.process(batch, (List<?>) batches.get(batch));
            }
            return rounds.outputs;
        } catch (final StreamsException error) {
            throw new Died(error);
        } finally {
            delete(folder);
        }
    }

    private static Map<String, Object> withCache(final Map<String, Object> document, final long cacheBytes) {
        final Map<String, Object> application = new HashMap<>(Call.mapping(document.get("application")));
        final Map<String, Object> config = new HashMap<>(Call.configs(Call.mapping(application.get("config"))));
        config.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, cacheBytes);
        application.put("config", config);
        final Map<String, Object> cached = new HashMap<>(document);
        cached.put("application", application);
        return cached;
    }

    private static final class Rounds {
        private final DriverInsides insides;
        private final List<Object> groups;
        private final List<Object> outputs = new ArrayList<>();
        private final List<ProducerRecord<byte[], byte[]>> waiting = new ArrayList<>();

        Rounds(final DriverInsides insides, final List<Object> groups) {
            this.insides = insides;
            this.groups = groups;
        }

        void process(final int batch, final List<?> inputs) {
            for (final Object each : inputs) {
                final Call record = new Call("record", Call.mapping(each));
                if (record.has("advance")) {
                    collect(batch, insides.advance(record.duration("advance").toMillis()));
                } else {
                    waiting.add(new ProducerRecord<>(record.text("topic"), null, record.number("timestamp"),
                        bytes(record.text("key")), value(record), DataRun.headers(record)));
                }
            }
            while (round(batch)) {
                continue;
            }
        }

        private boolean round(final int batch) {
            waiting.removeIf(this::processGlobal);
            boolean processed = false;
            for (final Object group : groups) {
                final List<ProducerRecord<byte[], byte[]>> chosen = new ArrayList<>();
                waiting.removeIf(record -> ((List<?>) group).contains(record.topic()) && chosen.add(record));
                if (!chosen.isEmpty()) {
                    chosen.forEach(this::enqueue);
                    collect(batch, insides.processAlone());
                    processed = true;
                }
            }
            return processed;
        }

        private boolean processGlobal(final ProducerRecord<byte[], byte[]> record) {
            final boolean processed =
                insides.processGlobal(record.topic(), record.timestamp(), record.key(), record.value(), record.headers());
            if (processed) {
                insides.skipOffset(record.topic());
            }
            return processed;
        }

        private void enqueue(final ProducerRecord<byte[], byte[]> record) {
            insides.enqueue(record.topic(), record.timestamp(), record.key(), record.value(), record.headers());
            insides.skipOffset(record.topic());
        }

        private void collect(final int batch, final List<ProducerRecord<byte[], byte[]>> written) {
            for (final ProducerRecord<byte[], byte[]> record : written) {
                outputs.add(output(batch, record.topic(), record.key(), record.value(), record.timestamp(), record.headers()));
                for (final Object group : groups) {
                    if (((List<?>) group).contains(record.topic())) {
                        waiting.add(record);
                    }
                }
            }
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
                outputs.add(output(after, topic, record.key(), record.value(), record.timestamp(), record.headers()));
            }
        }
    }

    private static Map<String, Object> output(
        final int after, final String topic, final byte[] key, final byte[] value, final Long timestamp, final Headers headers
    ) {
        final Map<String, Object> output = new HashMap<>();
        output.put("after", after);
        output.put("topic", topic);
        output.put("key", encoded(key));
        output.put("value", encoded(value));
        output.put("timestamp", timestamp);
        output.put("headers", shown(headers));
        return output;
    }

    private static Properties properties(final Map<String, Object> document, final Path folder) {
        ValueFormat.use(document);
        final Properties properties = Oracle.properties(document, APPLICATION);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, TextSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, ValueFormat.OfValues.class);
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

    /** The value is text, or with `base64` the base 64 of its bytes. */
    private static byte[] value(final Call record) {
        return record.flag("base64") && record.has("value") ? Base64.getDecoder().decode(record.text("value")) : bytes(record.text("value"));
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
