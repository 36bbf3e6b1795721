package headwater.streamstest;

import io.headwater.streams.InitParameters;
import io.headwater.streams.InternalTopics;
import io.headwater.streams.MissingInternalTopicsException;
import io.headwater.streams.topology.TopologyDocument;

import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.StringReader;
import java.lang.management.ManagementFactory;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import javax.management.MBeanServer;
import javax.management.ObjectName;

/** Runs several Kafka Streams applications. A line of the input is a command; a line of the output is an event. */
public final class Applications {
    private static final Map<String, KafkaStreams> RUNNING = new ConcurrentHashMap<>();
    private static final Duration CLOSE_TIMEOUT = Duration.ofSeconds(30);

    private Applications() {
    }

    public static void main(final String[] arguments) throws Exception {
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        print("READY");
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            final String[] words = line.split("\t");
            try {
                execute(words);
            } catch (final Exception error) {
                failed(words[1], "refused", error);
            }
        }
        RUNNING.values().forEach(each -> each.close(Duration.ZERO));
        Runtime.getRuntime().halt(0);
    }

    private static void execute(final String[] words) throws Exception {
        final String name = words[1];
        switch (words[0]) {
            case "start":
                start(name, words[2], properties(words[3]));
                break;
            case "initialize":
                initialize(name, words[2], properties(words[3]), Boolean.parseBoolean(words[4]), Long.parseLong(words[5]));
                break;
            case "export":
                TopologyDocument.write(Topologies.named(words[2]), properties(words[3]), Path.of(words[4]));
                print("exported\t" + name);
                break;
            case "close":
                close(RUNNING.remove(name));
                print("closed\t" + name);
                break;
            case "lags":
                print("lags\t" + name + "\t" + lags(RUNNING.get(name)));
                break;
            case "tasks":
                print("tasks\t" + name + "\t" + tasks(RUNNING.get(name)));
                break;
            case "awaitTasks": // until so many tasks are active
                awaitTasks(name, Integer.parseInt(words[2]));
                break;
            case "metrics":
                print("metrics\t" + name + "\t" + metrics());
                break;
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    private static void start(final String name, final String topology, final Properties properties) {
        final KafkaStreams application = new KafkaStreams(Topologies.named(topology), properties);
        application.setStateListener((now, before) -> print("state\t" + name + "\t" + now));
        application.setUncaughtExceptionHandler(error -> {
            failed(name, "failed", error);
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        RUNNING.put(name, application);
        application.start();
    }

    /**
     * Closes an application, which leaves its group: the next start does not wait for its session timeout. Since 4.2, the config
     * {@code internal.leave.group.on.close} has no effect.
     */
    private static void close(final KafkaStreams application) throws ReflectiveOperationException {
        final Class<?> options;
        try {
            options = Class.forName("org.apache.kafka.streams.CloseOptions");
        } catch (final ClassNotFoundException error) {
            application.close(CLOSE_TIMEOUT);
            return;
        }
        final Class<?> operations = Class.forName("org.apache.kafka.streams.CloseOptions$GroupMembershipOperation");
        final Object leaving = operations.getField("LEAVE_GROUP").get(null);
        final Object created = options.getMethod("groupMembershipOperation", operations).invoke(null, leaving);
        KafkaStreams.class.getMethod("close", options)
            .invoke(application, options.getMethod("withTimeout", Duration.class).invoke(created, CLOSE_TIMEOUT));
    }

    private static void initialize(
        final String name, final String topology, final Properties properties, final boolean ifIncomplete, final long timeout
    ) {
        final Topology built = Topologies.named(topology);
        InternalTopics.initialize(built, properties, ifIncomplete
            ? InitParameters.initParameters().enableSetupInternalTopicsIfIncomplete() : InitParameters.initParameters(),
            Duration.ofMillis(timeout));
        print("initialized\t" + name);
    }

    private static void failed(final String name, final String event, final Throwable error) {
        String topics = "";
        if (error instanceof MissingInternalTopicsException) {
            topics = String.join(",", ((MissingInternalTopicsException) error).topics());
        }
        Throwable root = error;
        while (root.getCause() != null) {
            root = root.getCause();
        }
        print(event + "\t" + name + "\t" + error.getClass().getSimpleName() + "\t" + flat(error.getMessage()) + "\t" + topics
            + "\t" + root.getClass().getSimpleName() + ": " + flat(root.getMessage()));
    }

    private static String lags(final KafkaStreams application) {
        final Map<String, Object> lags = new TreeMap<>();
        application.allLocalStorePartitionLags().forEach((store, partitions) ->
            partitions.forEach((partition, lag) -> lags.put(store + "-" + partition, lag.endOffsetPosition())));
        return lags.toString();
    }

    private static String tasks(final KafkaStreams application) {
        final Map<String, Object> tasks = new TreeMap<>();
        application.metadataForLocalThreads().forEach(thread -> {
            thread.activeTasks().forEach(task -> tasks.put(task.taskId().toString(), "active"));
            thread.standbyTasks().forEach(task -> tasks.put(task.taskId().toString(), "standby"));
        });
        return tasks.toString();
    }

    private static void awaitTasks(final String name, final int count) throws InterruptedException {
        new Thread(() -> {
            try {
                while (RUNNING.containsKey(name)) {
                    final KafkaStreams application = RUNNING.get(name);
                    final long active = application.metadataForLocalThreads().stream()
                        .mapToLong(thread -> thread.activeTasks().size()).sum();
                    if (active == count && application.state() == KafkaStreams.State.RUNNING) {
                        print("awaitTasks\t" + name);
                        return;
                    }
                    Thread.sleep(20);
                }
            } catch (final InterruptedException | RuntimeException error) {
                failed(name, "refused", error);
            }
        }).start();
    }

    private static String metrics() throws Exception {
        final MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        final Map<String, Object> values = new TreeMap<>();
        for (final String pattern : new String[] {"stream-subtopology-metrics", "stream-client-metrics"}) {
            for (final ObjectName bean : server.queryNames(new ObjectName("kafka.streams:type=" + pattern + ",*"), null)) {
                for (final javax.management.MBeanAttributeInfo attribute : server.getMBeanInfo(bean).getAttributes()) {
                    values.put(bean + " " + attribute.getName(), server.getAttribute(bean, attribute.getName()));
                }
            }
        }
        return values.toString();
    }

    private static Properties properties(final String text) throws Exception {
        final Properties properties = new Properties();
        properties.load(new StringReader(text.replace("\\n", "\n")));
        return properties;
    }

    private static String flat(final String text) {
        return String.valueOf(text).replace('\n', ' ').replace('\t', ' ');
    }

    static synchronized void print(final String line) {
        System.out.println(line);
        System.out.flush();
    }
}
