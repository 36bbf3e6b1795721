package headwater.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.ThreadInsides;
import org.apache.kafka.streams.ThreadMetadata;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.PunctuationType;
import org.apache.kafka.streams.processor.api.ContextualProcessor;
import org.apache.kafka.streams.processor.api.ProcessorContext;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.processor.internals.StreamThread;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BooleanSupplier;
import java.util.function.Supplier;

/**
 * Adds, removes and fails stream threads of a real application, and says what happened.
 *
 * <p>A request is a line of standard input: {@code {"bootstrapServers", "applicationId", "topic", "globalTopic", "partitions", "threads", "clients",
 * "handler", "cacheBytes", "operations": [[name, argument]]}}. The response is a line with a list: for each operation the value that it returned, and the
 * client afterwards, when it has settled; or {@code {"error": message}}.
 */
public final class ThreadHistories {
    private static final Duration TIMEOUT = Duration.ofSeconds(60);
    private static final Set<String> FAILING = ConcurrentHashMap.newKeySet();
    private static final Set<String> BLOCKED = ConcurrentHashMap.newKeySet();

    private final Call request;
    private final List<KafkaStreams> clients = new ArrayList<>();
    private final AtomicReference<Object> answerOfHandler = new AtomicReference<>();

    private ThreadHistories(final Call request) {
        this.request = request;
    }

    public static void main(final String[] arguments) throws Exception {
        final ObjectMapper json = new ObjectMapper();
        final PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        final BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = requests.readLine(); line != null; line = requests.readLine()) {
            answers.println(json.writeValueAsString(answer(new Call("history", Call.mapping(json.readValue(line, Map.class))))));
        }
    }

    private static Object answer(final Call request) {
        try {
            return new ThreadHistories(request).run();
        } catch (final Exception error) {
            error.printStackTrace();
            return Map.of("error", String.valueOf(error.getMessage()));
        }
    }

    private List<Object> run() throws Exception {
        final List<Object> steps = new ArrayList<>();
        try {
            for (int client = 1; client <= request.integer("clients"); client++) {
                clients.add(client(client));
            }
            for (final Object operation : request.list("operations")) {
                final List<?> words = (List<?>) operation;
                final Object returned = operate(words);
                await(this::isSettled, () -> "not settled after " + words + ": " + outcome(null));
                steps.add(outcome(returned));
            }
        } finally {
            BLOCKED.clear();
            clients.forEach(client -> client.close(TIMEOUT));
            clients.forEach(KafkaStreams::cleanUp);
        }
        return steps;
    }

    private KafkaStreams client(final int number) throws Exception {
        final Properties properties = new Properties();
        properties.put(StreamsConfig.APPLICATION_ID_CONFIG, request.text("applicationId"));
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, request.text("bootstrapServers"));
        properties.put(StreamsConfig.CLIENT_ID_CONFIG, number == 1 ? "client" : "other");
        properties.put(StreamsConfig.NUM_STREAM_THREADS_CONFIG, request.integer("threads"));
        properties.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, request.number("cacheBytes"));
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("history").toString());
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 50);
        properties.put(StreamsConfig.POLL_MS_CONFIG, 10);
        properties.put("heartbeat.interval.ms", 100);
        properties.put("session.timeout.ms", 6000);
        properties.put("auto.offset.reset", "earliest");
        final KafkaStreams client = new KafkaStreams(topology(), properties);
        if (number == 1) {
            handler(client).ifPresent(client::setUncaughtExceptionHandler);
        }
        return client;
    }

    private Topology topology() {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream(request.text("topic"), Consumed.with(Serdes.ByteArray(), Serdes.ByteArray())).process(Task::new);
        if (request.has("globalTopic")) {
            builder.globalTable(request.text("globalTopic"), Consumed.with(Serdes.String(), Serdes.String()));
        }
        return builder.build();
    }

    private Optional<StreamsUncaughtExceptionHandler> handler(final KafkaStreams client) {
        final String handler = request.text("handler");
        return handler == null ? Optional.empty() : Optional.of(error -> {
            switch (handler) {
                case "replace-thread":
                    return StreamThreadExceptionResponse.REPLACE_THREAD;
                case "shutdown-client":
                    return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
                case "shutdown-application":
                    return StreamThreadExceptionResponse.SHUTDOWN_APPLICATION;
                case "add-thread":
                    answerOfHandler.set(index(client.addStreamThread()));
                    throw new IllegalStateException(error);
                case "shutdown-thread":
                    throw new IllegalStateException(error);
                default:
                    throw new Call.BadRequest("unknown handler " + handler);
            }
        });
    }

    private Object operate(final List<?> words) throws Exception {
        final KafkaStreams client = clients.get(0);
        switch (String.valueOf(words.get(0))) {
            case "start":
                clients.forEach(KafkaStreams::start);
                return null;
            case "close":
                client.close(TIMEOUT);
                return null;
            case "add":
                return index(client.addStreamThread());
            case "add-two":
                return List.of(index(client.addStreamThread()), index(client.addStreamThread()));
            case "remove":
                return removed(client, words);
            case "fail":
                fail(List.of(thread(words.get(1))));
                return answerOfHandler.getAndSet(null);
            case "fail-together":
                fail(words.stream().skip(1).map(this::thread).toList());
                return answerOfHandler.getAndSet(null);
            case "block":
                block(thread(words.get(1)));
                return null;
            case "unblock":
                unblock();
                return null;
            case "fail-while-removed":
                return failWhileRemoved(client, words);
            default:
                throw new Call.BadRequest("unknown operation " + words);
        }
    }

    private static Object removed(final KafkaStreams client, final List<?> words) {
        try (Waker waker = new Waker(client)) {
            return index(words.size() == 1 ? client.removeStreamThread() : client.removeStreamThread(Duration.ofMillis(((Number) words.get(1)).longValue())));
        } catch (final TimeoutException error) {
            return "TimeoutException";
        }
    }

    private void fail(final List<StreamThread> threads) {
        threads.forEach(thread -> BLOCKED.add(thread.getName()));
        threads.forEach(thread -> FAILING.add(thread.getName()));
        threads.forEach(thread -> BLOCKED.remove(thread.getName()));
        await(() -> threads.stream().allMatch(thread -> thread.state() == StreamThread.State.DEAD), () -> "alive: " + threads);
    }

    /** Return when the thread waits in its task. */
    private static void block(final StreamThread thread) {
        BLOCKED.add(thread.getName());
        await(() -> Task.WAITING.contains(thread.getName()), () -> thread.getName() + " has no task");
    }

    private void unblock() {
        final List<StreamThread> threads = ThreadInsides.threads(clients.get(0)).stream().filter(thread -> BLOCKED.contains(thread.getName())).toList();
        BLOCKED.clear();
        await(() -> threads.stream().noneMatch(thread -> thread.state() == StreamThread.State.PENDING_SHUTDOWN), () -> "ending: " + threads);
    }

    /** Remove a thread with a timeout; it fails when it has begun to end. */
    private Object failWhileRemoved(final KafkaStreams client, final List<?> words) throws Exception {
        final StreamThread thread = thread(words.get(1));
        block(thread);
        final AtomicReference<Object> returned = new AtomicReference<>();
        final Thread remover = new Thread(() -> returned.set(removed(client, List.of("remove", words.get(2)))));
        remover.start();
        await(() -> thread.state() == StreamThread.State.PENDING_SHUTDOWN, () -> "not ending: " + thread);
        FAILING.add(thread.getName());
        BLOCKED.remove(thread.getName());
        remover.join();
        await(() -> thread.state() == StreamThread.State.DEAD, () -> "alive: " + thread);
        return returned.get();
    }

    private StreamThread thread(final Object index) {
        return ThreadInsides.threads(clients.get(0)).stream().filter(thread -> thread.getName().endsWith("-" + index)).findFirst().orElseThrow();
    }

    private static Object index(final Optional<String> name) {
        return name.<Object>map(text -> Integer.valueOf(text.substring(text.lastIndexOf('-') + 1))).orElse("none");
    }

    private boolean isSettled() {
        final Set<ThreadMetadata> alive = new HashSet<>();
        for (final KafkaStreams client : clients) {
            switch (client.state()) {
                case CREATED:
                    return true;
                case NOT_RUNNING:
                case ERROR:
                    break;
                case RUNNING:
                    if (ThreadInsides.threads(client).stream().anyMatch(thread -> !isSettled(thread))) {
                        return false;
                    }
                    alive.addAll(client.metadataForLocalThreads());
                    break;
                default:
                    return false;
            }
        }
        final int tasks = alive.stream().mapToInt(thread -> thread.activeTasks().size()).sum();
        return alive.isEmpty() || !BLOCKED.isEmpty() || tasks == request.integer("partitions");
    }

    private static boolean isSettled(final StreamThread thread) {
        return !BLOCKED.isEmpty() || thread.state() == StreamThread.State.DEAD
            || thread.state() == StreamThread.State.RUNNING && !ThreadInsides.isResizing(thread);
    }

    private Map<String, Object> outcome(final Object returned) {
        final KafkaStreams client = clients.get(0);
        final Map<String, Object> outcome = new LinkedHashMap<>();
        outcome.put("returned", returned);
        outcome.put("state", client.state().name());
        if (clients.size() > 1) {
            outcome.put("other", clients.get(1).state().name());
        }
        final Map<Integer, String> threads = new TreeMap<>();
        final Map<Integer, Long> caches = new TreeMap<>();
        final Map<String, String> states = new TreeMap<>();
        client.metadataForLocalThreads().forEach(thread -> states.put(thread.threadName(), thread.threadState()));
        for (final StreamThread thread : ThreadInsides.threads(client)) {
            if (states.containsKey(thread.getName())) {
                final Integer index = (Integer) index(Optional.of(thread.getName()));
                threads.put(index, states.get(thread.getName()) + (states.get(thread.getName()).equals(thread.state().name()) ? "" : " (" + thread.state() + ")"));
                caches.put(index, ThreadInsides.cacheBytes(thread));
            }
        }
        outcome.put("threads", threads);
        outcome.put("cacheBytes", caches);
        outcome.put("alive", metric(client, "alive-stream-threads"));
        outcome.put("failed", metric(client, "failed-stream-threads"));
        return outcome;
    }

    private static Integer metric(final KafkaStreams client, final String name) {
        return client.metrics().entrySet().stream()
            .filter(metric -> metric.getKey().name().equals(name) && metric.getKey().group().equals("stream-metrics"))
            .map(metric -> ((Number) metric.getValue().metricValue()).intValue()).findFirst().orElse(null);
    }

    private static void await(final BooleanSupplier condition, final Supplier<String> failure) {
        final long end = System.nanoTime() + TIMEOUT.toNanos();
        for (int times = 0; times < 12; times = condition.getAsBoolean() ? times + 1 : 0) {
            if (System.nanoTime() > end) {
                throw new IllegalStateException(failure.get());
            }
            try {
                Thread.sleep(20);
            } catch (final InterruptedException error) {
                throw new IllegalStateException(error);
            }
        }
    }

    /** Wakes who waits for a state of a thread: `StreamThread#waitOnThreadState` waits forever if it wakes exactly when its timeout has passed. */
    private static final class Waker implements AutoCloseable {
        private final Thread thread;

        Waker(final KafkaStreams client) {
            thread = new Thread(() -> {
                while (!Thread.currentThread().isInterrupted()) {
                    for (final StreamThread waited : ThreadInsides.threads(client)) {
                        synchronized (waited.getStateLock()) {
                            waited.getStateLock().notifyAll();
                        }
                    }
                    LockSupport.parkNanos(20_000_000);
                }
            });
            thread.start();
        }

        @Override
        public void close() {
            thread.interrupt();
        }
    }

    /** Blocks or fails its thread when it is asked to. */
    private static final class Task extends ContextualProcessor<byte[], byte[], byte[], byte[]> {
        static final Set<String> WAITING = ConcurrentHashMap.newKeySet();

        @Override
        public void init(final ProcessorContext<byte[], byte[]> context) {
            super.init(context);
            context.schedule(Duration.ofMillis(10), PunctuationType.WALL_CLOCK_TIME, time -> check(Thread.currentThread().getName()));
        }

        @Override
        public void process(final Record<byte[], byte[]> record) {
            context().forward(record);
        }

        private static void check(final String thread) {
            while (BLOCKED.contains(thread)) {
                WAITING.add(thread);
                LockSupport.parkNanos(1_000_000);
            }
            WAITING.remove(thread);
            if (FAILING.remove(thread)) {
                throw new IllegalStateException("failed on request");
            }
        }
    }
}
