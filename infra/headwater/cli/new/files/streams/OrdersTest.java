package com.example.orders;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.headwater.streams.topology.TopologyDocument;

import org.apache.kafka.common.serialization.LongDeserializer;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;
import org.apache.kafka.streams.TestInputTopic;
import org.apache.kafka.streams.TestOutputTopic;
import org.apache.kafka.streams.TopologyTestDriver;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.Map;
import java.util.Properties;

class OrdersTest {
    /** Write the document again with HEADWATER_WRITE=true, and commit it with the change of the code. */
    @Test
    void theDocumentIsWhatTheCodeNeeds() throws IOException {
        final Properties properties = Orders.properties();
        TopologyDocument.verify(Orders.topology(properties), properties, Path.of("topologies/orders.yaml"));
    }

    /** The test driver creates no topics and ignores the client supplier. */
    @Test
    void ordersAreCountedByCustomer(@TempDir final Path state) throws IOException {
        final Properties properties = Orders.properties();
        properties.setProperty("state.dir", state.toString());
        try (TopologyTestDriver driver = new TopologyTestDriver(Orders.topology(properties), properties)) {
            final TestInputTopic<String, String> orders =
                driver.createInputTopic("orders", new StringSerializer(), new StringSerializer());
            orders.pipeInput("1", "anna");
            orders.pipeInput("2", "bert");
            orders.pipeInput("3", "anna");
            final TestOutputTopic<String, Long> counts =
                driver.createOutputTopic("order-counts", new StringDeserializer(), new LongDeserializer());
            assertEquals(Map.of("anna", 2L, "bert", 1L), counts.readKeyValuesToMap());
        }
    }
}
