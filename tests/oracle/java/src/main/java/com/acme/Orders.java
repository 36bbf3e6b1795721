package com.acme;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TimeWindows;

import java.time.Duration;
import java.util.Properties;
import java.util.function.Function;
import java.util.function.Supplier;

/** An application whose topology tests export, and methods that do not return one. */
public class Orders {
    public static final Supplier<Topology> SUPPLIER = Orders::topology;
    public static final Function<Properties, Topology> OF_PROPERTIES = Orders::optimized;

    public static Topology topology() {
        final StreamsBuilder builder = new StreamsBuilder();
        fill(builder);
        return builder.build();
    }

    public static Topology optimized(final Properties properties) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.table("customers", Consumed.with(Serdes.String(), Serdes.String()), Materialized.as("customers"));
        fill(builder);
        return builder.build(properties);
    }

    public static void fill(final StreamsBuilder builder) {
        builder.stream("orders", Consumed.with(Serdes.String(), Serdes.String()))
            .repartition(Repartitioned.<String, String>as("spread").withNumberOfPartitions(6))
            .groupBy((key, value) -> value, Grouped.as("by-customer"))
            .windowedBy(TimeWindows.ofSizeAndGrace(Duration.ofHours(1), Duration.ofMinutes(5)))
            .count(Materialized.as("counts"));
    }

    /** A bean of a framework. */
    public Topology bean() {
        return topology();
    }

    public static Topology chatty() {
        for (int line = 0; line < 200_000; line++) {
            System.out.println("building the topology: " + line);
            System.err.println("version: 1");
        }
        new Thread(Orders::sleep).start();
        return topology();
    }

    public static Topology exits() {
        System.out.println("no configuration found");
        System.exit(3);
        return topology();
    }

    public static Topology hangs() {
        System.out.println("waiting for the registry");
        sleep();
        return topology();
    }

    public static Topology fails() {
        throw new IllegalStateException("no registry");
    }

    public static String text() {
        return "orders";
    }

    private static void sleep() {
        try {
            Thread.sleep(3_600_000);
        } catch (final InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    /** A class without a constructor that can be called. */
    public static final class Wired {
        private final String registry;

        public Wired(final String registry) {
            this.registry = registry;
        }

        public Topology topology() {
            return Orders.topology().describe() == null ? null : new Topology().addSource("registry", registry);
        }
    }
}
