package headwater.oracle;

import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.ValueTransformerWithKey;
import org.apache.kafka.streams.kstream.ValueTransformerWithKeySupplier;
import org.apache.kafka.streams.processor.ProcessorContext;
import org.apache.kafka.streams.processor.RecordContext;
import org.apache.kafka.streams.processor.TopicNameExtractor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessor;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorContext;
import org.apache.kafka.streams.processor.api.FixedKeyProcessorSupplier;
import org.apache.kafka.streams.processor.api.FixedKeyRecord;
import org.apache.kafka.streams.processor.api.Processor;
import org.apache.kafka.streams.processor.api.ProcessorSupplier;
import org.apache.kafka.streams.processor.api.Record;
import org.apache.kafka.streams.state.StoreBuilder;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;

/**
 * Suppliers of processors with the behavior in `Works`; each call returns a new processor, because Kafka Streams checks that.
 * In a list of `stores`, a text is the name of a store to connect, a mapping is a store of the supplier.
 */
@SuppressWarnings({"rawtypes", "unchecked"})
final class Processors {
    private Processors() {
    }

    static Object process(final Call call, final KStream stream) {
        final Named named = DslCalls.named(call);
        final ProcessorSupplier supplier = supplier(call);
        return named == null ? stream.process(supplier, names(call)) : stream.process(supplier, named, names(call));
    }

    static Object processValues(final Call call, final KStream stream) {
        final Named named = DslCalls.named(call);
        final Works.Work work = Works.named(call);
        final Set<StoreBuilder<?>> own = builders(call.list("stores"));
        final FixedKeyProcessorSupplier supplier = new FixedKeyProcessorSupplier() {
            @Override
            public FixedKeyProcessor get() {
                return new FixedKeyProcessor() {
                    private FixedKeyProcessorContext context;

                    @Override
                    public void init(final FixedKeyProcessorContext given) {
                        context = given;
                    }

                    @Override
                    public void process(final FixedKeyRecord record) {
                        context.forward(record.withValue(
                            work.value(context::getStateStore, record.key(), record.value(), record.timestamp())));
                    }
                };
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return own;
            }
        };
        return named == null ? stream.processValues(supplier, names(call)) : stream.processValues(supplier, named, names(call));
    }

    static Object transformValues(final Call call, final KTable table, final Materialized store) {
        final Named named = DslCalls.named(call);
        final Set<StoreBuilder<?>> own = builders(call.list("stores"));
        final ValueTransformerWithKeySupplier supplier = new ValueTransformerWithKeySupplier() {
            @Override
            public ValueTransformerWithKey get() {
                return new Transformer(Works.named(call));
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return own;
            }
        };
        if (store == null) {
            return named == null ? table.transformValues(supplier, names(call)) : table.transformValues(supplier, named, names(call));
        }
        return named == null ? table.transformValues(supplier, store, names(call)) : table.transformValues(supplier, store, named, names(call));
    }

    static ProcessorSupplier supplier(final Call call) {
        final Works.Work work = Works.named(call);
        final Set<StoreBuilder<?>> own = builders(call.list("stores"));
        return new ProcessorSupplier() {
            @Override
            public Processor get() {
                return new Processor() {
                    private org.apache.kafka.streams.processor.api.ProcessorContext context;

                    @Override
                    public void init(final org.apache.kafka.streams.processor.api.ProcessorContext given) {
                        context = given;
                        Works.schedule(call, context);
                    }

                    @Override
                    public void process(final Record record) {
                        if (Works.sends(call)) {
                            Works.send(call, context, record);
                        } else if (Works.keeps(call) || Works.collects(call)) {
                            Works.collect(context.getStateStore(Works.keeps(call) ? "global" : "memory"), record.key(), record.value());
                        } else {
                            context.forward(record.withValue(
                                work.value(context::getStateStore, record.key(), record.value(), record.timestamp())));
                        }
                    }
                };
            }

            @Override
            public Set<StoreBuilder<?>> stores() {
                return own;
            }
        };
    }

    static boolean hasExtractor(final Call call) {
        return call.has("extractor") || call.has("topicExpression");
    }

    static TopicNameExtractor extractor(final Call call) {
        final String text = call.text(call.has("extractor") ? "extractor" : "topicExpression");
        return new TopicNameExtractor() {
            @Override
            public String extract(final Object key, final Object value, final RecordContext context) {
                return Functions.topic(value);
            }

            @Override
            public String toString() {
                return text;
            }
        };
    }

    static String[] names(final Call call) {
        final List<String> names = new ArrayList<>();
        for (final Object store : call.list("stores")) {
            if (store instanceof String) {
                names.add((String) store);
            }
        }
        return names.toArray(new String[0]);
    }

    /** Returns null if there are no stores, as suppliers without stores do. */
    private static Set<StoreBuilder<?>> builders(final List<Object> stores) {
        final Set<StoreBuilder<?>> builders = new LinkedHashSet<>();
        for (final Object store : stores) {
            if (!(store instanceof String)) {
                builders.add(StoreOptions.builder(new Call("store", Call.mapping(store))));
            }
        }
        return builders.isEmpty() ? null : builders;
    }

    private static final class Transformer implements ValueTransformerWithKey {
        private final Works.Work work;
        private ProcessorContext context;

        private Transformer(final Works.Work work) {
            this.work = work;
        }

        @Override
        public void init(final ProcessorContext given) {
            context = given;
        }

        @Override
        public Object transform(final Object key, final Object value) {
            return work.value(context::getStateStore, key, value, context.timestamp());
        }

        @Override
        public void close() {
        }
    }
}
