package headwater.oracle;

import org.apache.kafka.streams.Topology;

/** Read-only state stores, which exist since 3.8 (KIP-813). */
final class ReadOnlyStores {
    private ReadOnlyStores() {
    }

    static void add(final Topology topology, final Call call) {
        throw new NotAvailable("addReadOnlyStateStore", "3.8");
    }
}
