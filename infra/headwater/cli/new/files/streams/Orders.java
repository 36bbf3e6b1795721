package com.example.orders;

import io.headwater.streams.InternalTopics;
import io.headwater.streams.MisconfiguredInternalTopicException;
import io.headwater.streams.MissingInternalTopicsException;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

import java.io.IOException;
import java.io.InputStream;
import java.util.List;
import java.util.Properties;

/** Counts the orders of each customer. A record of the topic orders is: order id, customer. */
public final class Orders {
    private Orders() {
    }

    public static void main(final String[] arguments) throws IOException {
        final Properties properties = properties();
        if (List.of(arguments).contains("initialize")) { // without Pulumi, for example on a developer's machine
            InternalTopics.initialize(topology(properties), properties);
            return;
        }
        final KafkaStreams streams = new KafkaStreams(topology(properties), properties);
        streams.setUncaughtExceptionHandler(error -> {
            if (error instanceof MissingInternalTopicsException || error instanceof MisconfiguredInternalTopicException) {
                System.err.println("An operator has to act: " + error.getMessage());
            }
            return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
        });
        Runtime.getRuntime().addShutdownHook(new Thread(streams::close));
        streams.start();
    }

    /** Returns the topology. Name each operator with a topic or a store: the names of the topics then stay. */
    public static Topology topology(final Properties properties) {
        final StreamsBuilder builder = new StreamsBuilder();
        builder.stream("orders", Consumed.with(Serdes.String(), Serdes.String()))
            .groupBy((order, customer) -> customer, Grouped.with("by-customer", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .to("order-counts", Produced.with(Serdes.String(), Serdes.Long()));
        return builder.build(properties);
    }

    /** Returns the properties, with the brokers of the environment variable {@code BOOTSTRAP_SERVERS} if it is set. */
    public static Properties properties() throws IOException {
        final Properties properties = new Properties();
        try (InputStream input = Orders.class.getResourceAsStream("/application.properties")) {
            properties.load(input);
        }
        final String brokers = System.getenv("BOOTSTRAP_SERVERS");
        if (brokers != null) {
            properties.setProperty("bootstrap.servers", brokers);
        }
        return properties;
    }
}
