package headwater.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.RemoveMembersFromConsumerGroupOptions;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.ConsumerInterceptor;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TopicExistsException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StoreQueryParameters;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.InvalidStateStoreException;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.processor.StateRestoreListener;
import org.apache.kafka.streams.state.KeyValueIterator;
import org.apache.kafka.streams.state.QueryableStoreTypes;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Runs a topology with data on a real broker, then edited ones, one after another, with the same application id and without local state.
 *
 * <p>A line of standard input is {@code {"bootstrapServers", "parallel", "series": [{"id", "topics": {name: partitions}, "document", "reads": [topic],
 * "input": [record], "edits": [{"document", "reads": [topic], "input": [record], "repartitions": [topic], "kept": {store: kind}}]}]}}. Each edit is
 * compared with the document before it. There is a line of output for each edit with its {@code number}: what was restored, read and left. Records
 * that are in flight are copies of the last records. An edit after a failed edit is not run. With {@code "keepsLocalState": true}, an edited topology
 * gets the local state of the topology before it.
 */
public final class Edits {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final long SECONDS = 90;

    private Edits() {
    }

    public static void main(final String[] arguments) throws Exception {
        final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            final Call request = new Call("edits", Call.mapping(JSON.readValue(line, Map.class)));
            final ExecutorService pool = Executors.newFixedThreadPool(request.number("parallel").intValue());
            for (final Object each : request.list("series")) {
                pool.execute(() -> {
                    final Call series = new Call("series", Call.mapping(each));
                    final List<Map<String, Object>> answers = new ArrayList<>();
                    String reason = "an edit before it could not be run";
                    try (Series one = new Series(request.text("bootstrapServers"), series)) {
                        one.run(answer -> {
                            answers.add(answer);
                            print(output, series.text("id"), answers.size(), answer);
                        });
                    } catch (final Exception | LinkageError | OutOfMemoryError error) {
                        reason = String.valueOf(messages(error));
                    }
                    for (int number = answers.size() + 1; number <= series.list("edits").size(); number++) {
                        print(output, series.text("id"), number, Map.of("broken", reason));
                    }
                });
            }
            pool.shutdown();
            pool.awaitTermination(1, TimeUnit.HOURS);
        }
    }

    private static void print(final PrintStream output, final String id, final int number, final Map<String, Object> answer) {
        try {
            final Map<String, Object> named = new HashMap<>(answer);
            named.put("id", id);
            named.put("number", number);
            final String line = JSON.writeValueAsString(named);
            synchronized (output) {
                output.println(line);
            }
        } catch (final Exception error) {
            throw new IllegalStateException(error);
        }
    }

    /** Counts what the main consumer of an application reads: topic partition to first offset and number of records. */
    public static final class Polled implements ConsumerInterceptor<byte[], byte[]> {
        static final Map<String, Map<TopicPartition, long[]>> OF = new ConcurrentHashMap<>();
        private String group;

        @Override
        public void configure(final Map<String, ?> configs) {
            group = String.valueOf(configs.get(ConsumerConfig.GROUP_ID_CONFIG));
        }

        @Override
        public ConsumerRecords<byte[], byte[]> onConsume(final ConsumerRecords<byte[], byte[]> records) {
            final Map<TopicPartition, long[]> read = OF.computeIfAbsent(group, key -> new ConcurrentHashMap<>());
            for (final ConsumerRecord<byte[], byte[]> record : records) {
                read.computeIfAbsent(new TopicPartition(record.topic(), record.partition()), key -> new long[] {record.offset(), 0})[1]++;
            }
            return records;
        }

        @Override
        public void onCommit(final Map<TopicPartition, OffsetAndMetadata> offsets) {
        }

        @Override
        public void close() {
        }
    }

    private static final class Series implements AutoCloseable {
        private final String servers;
        private final Call series;
        private final String id;
        private final Admin admin;
        private final KafkaProducer<byte[], byte[]> producer;
        private final boolean keepsLocalState;
        private Path localState;
        private Run run;

        Series(final String servers, final Call series) {
            this.servers = servers;
            this.series = series;
            this.id = series.text("id");
            this.keepsLocalState = Boolean.TRUE.equals(series.options().get("keepsLocalState"));
            this.admin = Admin.create(Map.<String, Object>of("bootstrap.servers", servers));
            this.producer = new KafkaProducer<>(
                Map.of("bootstrap.servers", servers, "linger.ms", 0), new ByteArraySerializer(), new ByteArraySerializer());
        }

        /** Gives {@code answers} what each edit did; ends after an edit that fails, or whose records are not all processed. */
        void run(final Consumer<Map<String, Object>> answers) throws Exception {
            final List<NewTopic> topics = new ArrayList<>();
            Call.mapping(series.options().get("topics")).forEach((name, count) -> topics.add(new NewTopic(name, ((Number) count).intValue(), (short) 1)));
            admin.createTopics(topics).all().get();
            createTopicsOfExtractors();
            produce(series.list("input"));
            run = new Run(series);
            run.start();
            run.awaitIdle();
            for (final Object each : series.list("edits")) {
                final Call edit = new Call("edit", Call.mapping(each));
                final Map<String, Object> answer = new HashMap<>();
                answer.put("dumpBefore", run.dump(edit));
                answer.put("failedBefore", run.failures);
                answer.put("wasIdle", run.isIdle);
                run.close();
                leaveGroup();
                answer.put("committed", shown(committed()));
                answer.put("entries", sizes());
                Polled.OF.remove(id);
                run = new Run(edit);
                run.start();
                answer.put("restored", new TreeMap<>(run.restored));
                answer.put("dumpAfter", run.dump(edit));
                final Map<String, Object> ends = new TreeMap<>();
                for (final String topic : edit.texts("repartitions")) {
                    ends.put(topic, copyLast(topic));
                }
                answer.put("inFlight", ends);
                produce(edit.list("input"));
                run.awaitIdle();
                answer.put("failedAfter", run.failures);
                answer.put("isIdle", run.isIdle);
                answer.put("finallyCommitted", shown(committed()));
                final Map<String, Object> read = new TreeMap<>();
                Polled.OF.getOrDefault(id, Map.of()).forEach((partition, range) -> read.put(partition.toString(), range.clone()));
                answer.put("read", read);
                answers.accept(answer);
                if (!run.failures.isEmpty() || !run.isIdle) {
                    return;
                }
            }
        }

        /** Creates the topics of {@link Functions#topic}, which all series share: without them, a task waits until it times out. */
        private void createTopicsOfExtractors() throws Exception {
            for (final String value : List.of("", "a")) {
                try {
                    admin.createTopics(List.of(new NewTopic(Functions.topic(value), 1, (short) 1))).all().get();
                } catch (final ExecutionException error) {
                    if (!(error.getCause() instanceof TopicExistsException)) {
                        throw error;
                    }
                }
            }
        }

        private void produce(final List<Object> records) throws Exception {
            for (final Object each : records) {
                final Call record = new Call("record", Call.mapping(each));
                producer.send(new ProducerRecord<>(record.text("topic"), null, record.number("timestamp"), bytes(record, "key"), bytes(record, "value")));
            }
            producer.flush();
        }

        private static byte[] bytes(final Call record, final String name) {
            return record.text(name) == null ? null : record.text(name).getBytes(StandardCharsets.UTF_8);
        }

        /** Appends a copy of the last record to each partition that has one; returns the new end offsets of these partitions. */
        private Map<String, Object> copyLast(final String topic) throws Exception {
            final Map<String, Object> ends = new TreeMap<>();
            final Map<TopicPartition, Long> last = ends(List.of(topic));
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(
                Map.of("bootstrap.servers", servers), new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                for (final Map.Entry<TopicPartition, Long> entry : last.entrySet()) {
                    if (entry.getValue() == 0) {
                        continue;
                    }
                    consumer.assign(List.of(entry.getKey()));
                    consumer.seek(entry.getKey(), entry.getValue() - 1);
                    for (final ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofSeconds(5))) {
                        producer.send(new ProducerRecord<>(
                            topic, record.partition(), record.timestamp(), record.key(), record.value(), record.headers())).get();
                        ends.put(entry.getKey().toString(), record.offset() + 2);
                    }
                }
            }
            return ends;
        }

        /** Removes the members: which config or method lets a closed client leave depends on the version. */
        private void leaveGroup() throws Exception {
            if (!admin.describeConsumerGroups(List.of(id)).describedGroups().get(id).get().members().isEmpty()) {
                admin.removeMembersFromConsumerGroup(id, new RemoveMembersFromConsumerGroupOptions()).all().get();
            }
        }

        private Map<TopicPartition, Long> committed() throws Exception {
            final Map<TopicPartition, Long> found = new HashMap<>();
            admin.listConsumerGroupOffsets(id).partitionsToOffsetAndMetadata().get().forEach((partition, offset) -> {
                if (offset != null) {
                    found.put(partition, offset.offset());
                }
            });
            return found;
        }

        private Map<TopicPartition, Long> ends(final List<String> topics) throws Exception {
            final Map<TopicPartition, OffsetSpec> wanted = new HashMap<>();
            final Set<String> known = admin.listTopics().names().get();
            final List<String> existing = new ArrayList<>(topics);
            existing.retainAll(known);
            admin.describeTopics(existing).allTopicNames().get().forEach((topic, description) ->
                description.partitions().forEach(each -> wanted.put(new TopicPartition(topic, each.partition()), OffsetSpec.latest())));
            final Map<TopicPartition, Long> found = new HashMap<>();
            admin.listOffsets(wanted).all().get().forEach((partition, result) -> found.put(partition, result.offset()));
            return found;
        }

        /** Internal topic to number of records. */
        private Map<String, Object> sizes() throws Exception {
            final List<String> topics = new ArrayList<>(admin.listTopics().names().get());
            topics.removeIf(name -> !name.startsWith(id + "-"));
            final Map<String, Long> sizes = new TreeMap<>();
            ends(topics).forEach((partition, end) -> sizes.merge(partition.topic(), end, Long::sum));
            return new TreeMap<>(sizes);
        }

        private static Map<String, Object> shown(final Map<TopicPartition, Long> offsets) {
            final Map<String, Object> shown = new TreeMap<>();
            offsets.forEach((partition, offset) -> shown.put(partition.toString(), offset));
            return shown;
        }

        @Override
        public void close() throws Exception {
            if (run != null) {
                run.close();
            }
            if (localState != null) {
                deleteFiles(localState);
            }
            final Set<String> all = new HashSet<>(admin.listTopics().names().get());
            all.removeIf(name -> !name.startsWith(id));
            admin.deleteTopics(all).all().get();
            producer.close(Duration.ofSeconds(5));
            admin.close(Duration.ofSeconds(5));
            Polled.OF.remove(id);
        }

        private static void deleteFiles(final Path folder) throws Exception {
            if (Files.notExists(folder)) {
                return;
            }
            try (Stream<Path> files = Files.walk(folder)) {
                files.sorted(Comparator.reverseOrder()).forEach(file -> file.toFile().delete());
            }
        }

        private final class Run {
            private final Map<String, Object> document;
            private final List<String> topics;
            private final Map<String, Long> restored = new ConcurrentHashMap<>();
            private final List<Object> failures = new ArrayList<>();
            private final CountDownLatch started = new CountDownLatch(1);
            private final Path folder;
            private KafkaStreams application;
            private volatile boolean isIdle;
            private volatile boolean isEnded;

            Run(final Call version) throws Exception {
                this.document = Call.mapping(version.options().get("document"));
                this.topics = version.texts("reads");
                if (localState == null || !keepsLocalState) {
                    localState = Files.createTempDirectory("edit");
                }
                this.folder = localState;
            }

            void start() throws Exception {
                final Topology topology;
                final Properties properties = properties();
                synchronized (Edits.class) {
                    topology = Oracle.build(document, id);
                }
                application = new KafkaStreams(topology, properties);
                application.setStateListener((now, before) -> {
                    if (now == KafkaStreams.State.ERROR || now == KafkaStreams.State.NOT_RUNNING) {
                        isEnded = true;
                    }
                    if (now == KafkaStreams.State.RUNNING || isEnded) {
                        started.countDown();
                    }
                });
                application.setUncaughtExceptionHandler(error -> {
                    failures.add(messages(error));
                    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                });
                application.setGlobalStateRestoreListener(new StateRestoreListener() {
                    @Override
                    public void onRestoreStart(final TopicPartition partition, final String store, final long first, final long end) {
                        restored.merge(store + " " + partition.topic(), 0L, Long::sum);
                    }

                    @Override
                    public void onBatchRestored(final TopicPartition partition, final String store, final long end, final long count) {
                    }

                    @Override
                    public void onRestoreEnd(final TopicPartition partition, final String store, final long total) {
                        restored.merge(store + " " + partition.topic(), total, Long::sum);
                    }
                });
                application.start();
                if (!started.await(SECONDS, TimeUnit.SECONDS)) {
                    failures.add(List.of("not running after " + SECONDS + " seconds: " + application.state()));
                }
            }

            /** Waits until all records of the topics are processed and committed, and no new ones appear. */
            void awaitIdle() throws Exception {
                final long last = System.nanoTime() + TimeUnit.SECONDS.toNanos(SECONDS);
                Map<TopicPartition, Long> before = Map.of();
                while (!isEnded && System.nanoTime() < last) {
                    final Map<TopicPartition, Long> ends = ends(topics);
                    final Map<TopicPartition, Long> offsets = committed();
                    ends.values().removeIf(end -> end == 0);
                    if (offsets.entrySet().containsAll(ends.entrySet()) && ends.equals(before)) {
                        isIdle = true;
                        return;
                    }
                    before = ends;
                    Thread.sleep(150);
                }
            }

            /** Store to its entries as texts, of the stores that the edit keeps and that can be queried. */
            Map<String, Object> dump(final Call edit) throws InterruptedException {
                final Map<String, Object> found = new TreeMap<>();
                for (final Map.Entry<String, Object> store : Call.mapping(edit.options().get("kept")).entrySet()) {
                    found.put(store.getKey(), entries(store.getKey(), "window".equals(store.getValue())));
                }
                return found;
            }

            /** The entries of a store, or why it cannot be read; a rebalance may follow the first start. */
            private Object entries(final String store, final boolean isWindowed) throws InterruptedException {
                final long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
                while (true) {
                    try (KeyValueIterator<?, ?> all = isWindowed
                        ? application.store(StoreQueryParameters.fromNameAndType(store, QueryableStoreTypes.windowStore())).all()
                        : application.store(StoreQueryParameters.fromNameAndType(store, QueryableStoreTypes.keyValueStore())).all()) {
                        final List<String> entries = new ArrayList<>();
                        all.forEachRemaining(entry -> entries.add(entry.key + "=" + entry.value));
                        entries.sort(Comparator.naturalOrder());
                        // While tasks are restored, a store has only the entries of the others.
                        if (isEnded || application.state() == KafkaStreams.State.RUNNING || System.nanoTime() > deadline) {
                            return entries;
                        }
                    } catch (final RuntimeException error) {
                        if (isEnded || !(error instanceof InvalidStateStoreException) || System.nanoTime() > deadline) {
                            return "cannot be read: " + error;
                        }
                    }
                    Thread.sleep(50);
                }
            }

            void close() throws Exception {
                if (application != null) {
                    application.close(Duration.ofSeconds(20));
                }
                if (!keepsLocalState) {
                    deleteFiles(folder);
                }
            }

            private Properties properties() {
                final Properties properties = Oracle.properties(document, id);
                properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
                properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, TextSerde.class);
                properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, TextSerde.class);
                properties.put(StreamsConfig.STATE_DIR_CONFIG, folder.toString());
                properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
                properties.put(StreamsConfig.POLL_MS_CONFIG, 20);
                properties.put("repartition.purge.interval.ms", 3_600_000);
                properties.put("state.cleanup.delay.ms", 3_600_000);
                properties.put("max.task.idle.ms", -1);
                properties.put(StreamsConfig.mainConsumerPrefix(ConsumerConfig.INTERCEPTOR_CLASSES_CONFIG), Polled.class.getName());
                return properties;
            }
        }
    }

    private static List<String> messages(final Throwable error) {
        final List<String> messages = new ArrayList<>();
        for (Throwable cause = error; cause != null && messages.size() < 8; cause = cause.getCause()) {
            messages.add(cause.toString().replaceAll("\\s+", " "));
        }
        return messages;
    }
}
