package headwater.streamstest;

import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.TableJoined;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.Windowed;
import org.apache.kafka.streams.kstream.WindowedSerdes;
import org.apache.kafka.streams.processor.StreamPartitioner;
import org.apache.kafka.streams.state.KeyValueStore;

import java.time.Duration;
import java.util.Optional;
import java.util.Set;

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
            case "partitioned":
                partitioned(builder, words[1], words[2]);
                break;
            case "stateless":
                builder.stream(words[1], consumed).to(words[2], Produced.with(Serdes.String(), Serdes.String()));
                break;
            default:
                throw new IllegalArgumentException(name);
        }
        return builder.build();
    }

    /** Each kind of sink: with and without a partitioner, with windowed keys, and of a foreign-key join. */
    private static void partitioned(final StreamsBuilder builder, final String input, final String output) {
        final Consumed<String, String> consumed = Consumed.with(Serdes.String(), Serdes.String());
        final Produced<String, String> produced = Produced.with(Serdes.String(), Serdes.String());
        final Grouped<String, String> grouped = Grouped.with("by-value", Serdes.String(), Serdes.String());
        final Serde<Windowed<String>> windowed = WindowedSerdes.timeWindowedSerdeFrom(String.class, 3_600_000L);
        final KStream<String, String> source = builder.stream(input, consumed);
        source.to(output + "-plain", produced);
        source.to(output + "-class", Produced.with(Serdes.String(), Serdes.String()).withStreamPartitioner(new First<>()));
        final Repartitioned<String, String> repartitioned = Repartitioned.with(Serdes.String(), Serdes.String());
        source.repartition(repartitioned.withName("plain")).to(output + "-plain", produced);
        source.repartition(repartitioned.withName("class").withStreamPartitioner(new First<>()))
            .groupByKey(Grouped.with(Serdes.String(), Serdes.String())).count(Materialized.as("class"));
        final KStream<Windowed<String>, Long> counts = source.groupByKey(grouped)
            .windowedBy(TimeWindows.ofSizeWithNoGrace(Duration.ofHours(1))).count(Materialized.as("windows")).toStream();
        counts.to(output + "-windowed", Produced.with(windowed, Serdes.Long()));
        counts.repartition(Repartitioned.with(windowed, Serdes.Long()).withName("windowed")).foreach((key, value) -> { });
        final KTable<String, Long> right = source.groupBy((key, value) -> value, grouped).count(Materialized.as("right"));
        source.toTable(Materialized.<String, String, KeyValueStore<Bytes, byte[]>>as("left")
            .withKeySerde(Serdes.String()).withValueSerde(Serdes.String()))
            .join(right, value -> value, (left, count) -> left + count, TableJoined.as("joined"));
    }

    /** A partitioner in the interfaces before and after Kafka 4.0. */
    private static final class First<K, V> implements StreamPartitioner<K, V> {
        public Integer partition(final String topic, final K key, final V value, final int count) {
            return 0;
        }

        public Optional<Set<Integer>> partitions(final String topic, final K key, final V value, final int count) {
            return Optional.of(Set.of(0));
        }
    }
}
