package headwater.oracle;

import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.streams.Topology;
import org.apache.kafka.streams.processor.TimestampExtractor;
import org.apache.kafka.streams.state.StoreBuilder;

import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/** The calls of a document on a `Topology`. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class ProcessorApiCalls {
    static final Set<String> OPERATORS = Set.of("addSource", "addProcessor", "addSink", "connectProcessorAndStateStores");

    private final Topology topology;

    ProcessorApiCalls(final Topology topology) {
        this.topology = topology;
    }

    /** Whether the call is one of the Processor API, not of the DSL. */
    static boolean owns(final Call call) {
        return OPERATORS.contains(call.operator()) || call.has("processors") || call.has("sourceName");
    }

    void apply(final Call call) {
        final String name = call.text("name");
        final String[] parents = call.texts("parents").toArray(new String[0]);
        switch (call.operator()) {
            case "addSource": addSource(call, name); break;
            case "addProcessor":
                topology.addProcessor(name, Processors.supplier(call), parents);
                if (Processors.names(call).length > 0) {
                    topology.connectProcessorAndStateStores(name, Processors.names(call));
                }
                break;
            case "addSink":
                if (Processors.hasExtractor(call)) {
                    topology.addSink(name, Processors.extractor(call), parents);
                } else {
                    topology.addSink(name, call.text("topic"), parents);
                }
                break;
            case "addStateStore":
                topology.addStateStore((StoreBuilder) StoreOptions.builder(call), call.texts("processors").toArray(new String[0]));
                break;
            case "connectProcessorAndStateStores":
                topology.connectProcessorAndStateStores(call.text("processor"), call.texts("stores").toArray(new String[0]));
                break;
            case "addGlobalStore":
                topology.addGlobalStore((StoreBuilder) StoreOptions.builder(call.part("store")), call.text("sourceName"),
                    new StringDeserializer(), new StringDeserializer(), call.text("topic"), name, Processors.supplier(filler(call)));
                break;
            case "addReadOnlyStateStore":
                ReadOnlyStores.add(topology, call);
                break;
            default: throw new Call.BadRequest("unknown operator on a topology: " + call.operator());
        }
    }

    /** A processor without own stores that fills a store. */
    static Call filler(final Call call) {
        return new Call(call.operator(), call.has("class") ? Map.of("class", call.text("class")) : Map.of());
    }

    private void addSource(final Call call, final String name) {
        final String reset = call.text("offsetReset");
        final TimestampExtractor timestamps = call.has("timestamp") ? Functions.EXTRACTOR : null;
        if (call.has("pattern")) {
            OffsetResets.addSource(topology, reset, timestamps, name, Pattern.compile(call.text("pattern")));
        } else {
            final List<String> topics = call.has("topic") ? List.of(call.text("topic")) : call.texts("topics");
            OffsetResets.addSource(topology, reset, timestamps, name, topics.toArray(new String[0]));
        }
    }
}
