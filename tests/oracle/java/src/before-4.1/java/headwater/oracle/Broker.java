package headwater.oracle;

import org.apache.kafka.streams.processor.internals.StartedTopology;

import java.util.Map;

/** The broker's side of the streams protocol, which exists since 4.1 (KIP-1071). */
final class Broker {
    private Broker() {
    }

    static Map<String, Object> counts(final StartedTopology started, final Map<String, Integer> partitions) {
        throw new NotAvailable("group.protocol streams", "4.1");
    }
}
