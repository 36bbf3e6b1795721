package headwater.streamstest;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.TimeWindows;

import java.time.Duration;

/** The topologies of the tests. A name is a kind and topics: {@code counts:input:output}. */
final class Topologies {
    private Topologies() {
    }

    static Topology named(final String name) {
        final String[] words = name.split(":");
        final StreamsBuilder builder = new StreamsBuilder();
        final Consumed<String, String> consumed = Consumed.with(Serdes.String(), Serdes.String());
        final Grouped<String, String> grouped = Grouped.with("by-value", Serdes.String(), Serdes.String());
        switch (words[0]) {
            case "counts": // a repartition topic and its changelog
                builder.stream(words[1], consumed).groupBy((key, value) -> value, grouped).count(Materialized.as("counts"))
                    .toStream().to(words[2], Produced.with(Serdes.String(), Serdes.Long()));
                break;
            case "keys": // a changelog only
                builder.stream(words[1], consumed).groupByKey(grouped).count(Materialized.as("keys"))
                    .toStream().to(words[2], Produced.with(Serdes.String(), Serdes.Long()));
                break;
            case "windows": // a changelog with a retention
                builder.stream(words[1], consumed).groupByKey(grouped)
                    .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1))).count(Materialized.as("windows"));
                break;
            case "stateless":
                builder.stream(words[1], consumed).to(words[2], Produced.with(Serdes.String(), Serdes.String()));
                break;
            default:
                throw new IllegalArgumentException(name);
        }
        return builder.build();
    }
}
