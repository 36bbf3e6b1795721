import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;

import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;
import java.util.function.BooleanSupplier;

/** Runs an application with and without Headwater's library, and expands its source topic meanwhile. */
public final class SideBySide {
    private static final long LONGEST_MS = 60_000;

    private final String name;
    private final KafkaStreams streams;
    private volatile String error = "";

    private SideBySide(final String name, final String brokers, final Path state, final Map<String, String> library) {
        this.name = name;
        final Properties properties = new Properties();
        properties.put("application.id", "clicks-" + name);
        properties.put("bootstrap.servers", brokers);
        properties.put("state.dir", state.resolve(name).toString());
        properties.put("metadata.max.age.ms", "500");
        properties.putAll(library);
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream("clicks", Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((user, page) -> page, Grouped.with("by-page", Serdes.String(), Serdes.String()))
            .count(Materialized.as("clicks-by-page"));
        streams = new KafkaStreams(builder.build(properties), properties);
        streams.setUncaughtExceptionHandler(failure -> {
            error = failure.getMessage();
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        streams.start();
    }

    public static void main(final String[] arguments) throws Exception {
        final Path state = Path.of(arguments[1]);
        final SideBySide without = new SideBySide("without-library", arguments[0], state, Map.of());
        final SideBySide with = new SideBySide("with-library", arguments[0], state, Map.of(
            "default.client.supplier", "io.headwater.streams.HeadwaterClientSupplier",
            "partition.autoscaling.enabled", "true",
            "producer.partitioner.class", "io.headwater.streams.partitioning.StaticPartitioner",
            "producer.static.partitioner.class", "initial-hash",
            "producer.static.partitioner.initial.partitions", "2"));
        final boolean started = await(() -> with.tasks() == 4 && without.tasks() == 4);
        print("The topic clicks has 2 partitions.", without, with);
        try (Admin admin = Admin.create(Map.of("bootstrap.servers", arguments[0]))) {
            admin.createPartitions(Map.of("clicks", NewPartitions.increaseTo(4))).all().get();
        }
        final boolean expected = await(() -> with.tasks() == 8 && !without.error.isEmpty());
        print("It has 4 partitions.", without, with);
        Runtime.getRuntime().halt(started && expected ? 0 : 1);
    }

    private int tasks() {
        return streams.state() != KafkaStreams.State.RUNNING ? 0
            : streams.metadataForLocalThreads().stream().mapToInt(thread -> thread.activeTasks().size()).sum();
    }

    private static void print(final String title, final SideBySide... applications) {
        System.out.println(title);
        for (final SideBySide each : applications) {
            System.out.println("  " + each.name + ": "
                + (each.error.isEmpty() ? each.streams.state() + ", " + each.tasks() + " tasks" : each.error));
        }
    }

    private static boolean await(final BooleanSupplier condition) throws InterruptedException {
        final long started = System.currentTimeMillis();
        while (!condition.getAsBoolean() && System.currentTimeMillis() - started < LONGEST_MS) {
            Thread.sleep(20);
        }
        return condition.getAsBoolean();
    }
}
