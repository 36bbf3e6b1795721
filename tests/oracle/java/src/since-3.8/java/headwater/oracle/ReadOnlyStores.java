package headwater.oracle;

import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.state.StoreBuilder;

/** Read-only state stores, which exist since 3.8 (KIP-813). */
@SuppressWarnings({"rawtypes", "unchecked"})
final class ReadOnlyStores {
    private ReadOnlyStores() {
    }

    static void add(final Topology topology, final Call call) {
        topology.addReadOnlyStateStore((StoreBuilder) StoreOptions.builder(call.part("store")), call.text("sourceName"),
            new StringDeserializer(), new StringDeserializer(), call.text("topic"), call.text("name"),
            Processors.supplier(ProcessorApiCalls.filler(call)));
    }
}
