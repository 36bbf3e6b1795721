package headwater.oracle;

import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.processor.TimestampExtractor;

import java.util.regex.Pattern;

/** Offset reset policies, which are two before 4.0. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class OffsetResets {
    private OffsetResets() {
    }

    static Consumed set(final Consumed consumed, final String policy) {
        return consumed.withOffsetResetPolicy(of(policy));
    }

    /** The policy may be null. */
    static void addSource(
        final Topology topology, final String policy, final TimestampExtractor timestamps, final String name, final Pattern pattern
    ) {
        topology.addSource(policy == null ? null : of(policy), timestamps, name, pattern);
    }

    /** The policy may be null. */
    static void addSource(
        final Topology topology, final String policy, final TimestampExtractor timestamps, final String name, final String... topics
    ) {
        topology.addSource(policy == null ? null : of(policy), timestamps, name, topics);
    }

    private static Topology.AutoOffsetReset of(final String policy) {
        switch (policy) {
            case "earliest": return Topology.AutoOffsetReset.EARLIEST;
            case "latest": return Topology.AutoOffsetReset.LATEST;
            default: throw new NotAvailable("offset reset policy " + policy, "4.0");
        }
    }
}
