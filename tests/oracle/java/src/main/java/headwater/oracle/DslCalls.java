package headwater.oracle;

import org.apache.kafka.common.utils.Bytes;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.kstream.Branched;
import org.apache.kafka.streams.kstream.BranchedKStream;
import org.apache.kafka.streams.kstream.CogroupedKStream;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.EmitStrategy;
import org.apache.kafka.streams.kstream.GlobalKTable;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.KGroupedStream;
import org.apache.kafka.streams.kstream.KGroupedTable;
import org.apache.kafka.streams.kstream.KStream;
import org.apache.kafka.streams.kstream.KTable;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Named;
import org.apache.kafka.streams.kstream.Predicate;
import org.apache.kafka.streams.kstream.Printed;
import org.apache.kafka.streams.kstream.Produced;
import org.apache.kafka.streams.kstream.Repartitioned;
import org.apache.kafka.streams.kstream.SessionWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.SessionWindowedKStream;
import org.apache.kafka.streams.kstream.SessionWindows;
import org.apache.kafka.streams.kstream.SlidingWindows;
import org.apache.kafka.streams.kstream.Suppressed;
import org.apache.kafka.streams.kstream.TimeWindowedCogroupedKStream;
import org.apache.kafka.streams.kstream.TimeWindowedKStream;
import org.apache.kafka.streams.kstream.TimeWindows;
import org.apache.kafka.streams.kstream.UnlimitedWindows;
import org.apache.kafka.streams.kstream.Windows;
import org.apache.kafka.streams.state.KeyValueStore;
import org.apache.kafka.streams.state.SessionStore;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.WindowStore;

import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;

/** The DSL part of a document: each step is one call on the object that its handle names. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class DslCalls {
    private final StreamsBuilder builder;
    private final Map<String, Object> handles = new HashMap<>();

    DslCalls(final StreamsBuilder builder) {
        this.builder = builder;
    }

    /** Makes the calls of `steps` in order; returns the result of the last call. */
    Object run(final List<Object> steps, final Object start) {
        Object result = start;
        for (final Object step : steps) {
            final Call call = Call.of(Call.mapping(step));
            final Object input = call.has("from") ? handle(call.text("from")) : result;
            result = apply(call, input);
            if (call.has("as")) {
                handles.put(call.text("as"), result);
            }
        }
        return result;
    }

    private Object handle(final String name) {
        return Optional.ofNullable(handles.get(name))
            .orElseThrow(() -> new Call.BadRequest("no handle named " + name));
    }

    private Object apply(final Call call, final Object input) {
        switch (call.operator()) {
            case "stream": return stream(call);
            case "table": return table(call);
            case "globalTable": return globalTable(call);
            case "addStateStore": builder.addStateStore(StoreOptions.builder(call)); return null;
            case "addGlobalStore":
                builder.addGlobalStore((StoreBuilder) StoreOptions.builder(call.part("store")), call.text("topic"), consumed(call),
                    Processors.supplier(ProcessorApiCalls.filler(call)));
                return null;
            case "groupByKey": return groupByKey(call, (KStream) input);
            case "groupBy": return groupBy(call, input);
            case "windowedBy": return windowedBy(call, input);
            case "cogroup":
                return call.has("with")
                    ? ((CogroupedKStream) input).cogroup((KGroupedStream) handle(call.text("with")), Functions.AGGREGATOR)
                    : ((KGroupedStream) input).cogroup(Functions.AGGREGATOR);
            case "count": return count(call, input);
            case "reduce": return reduce(call, input);
            case "aggregate": return aggregate(call, input);
            case "suppress": return ((KTable) input).suppress(suppressed(call));
            case "join":
            case "leftJoin":
            case "outerJoin": return new Joins(call, input, handle(call.text("with"))).apply();
            default: return input instanceof KTable ? onTable(call, (KTable) input) : onStream(call, (KStream) input);
        }
    }

    private Object onStream(final Call call, final KStream stream) {
        switch (call.operator()) {
            case "print":
                stream.print(call.has("name") ? Printed.toSysOut().withName(call.text("name")) : Printed.toSysOut());
                return null;
            case "to": to(call, stream); return null;
            case "repartition": return call.options().isEmpty() ? stream.repartition() : stream.repartition(repartitioned(call));
            default: return onStream(call, stream, named(call));
        }
    }

    private Object onStream(final Call call, final KStream stream, final Named named) {
        switch (call.operator()) {
            case "filter": return named == null ? stream.filter(Functions.predicate(call)) : stream.filter(Functions.predicate(call), named);
            case "filterNot": return named == null ? stream.filterNot(Functions.predicate(call)) : stream.filterNot(Functions.predicate(call), named);
            case "map": return named == null ? stream.map(Functions.PAIR_MAPPER) : stream.map(Functions.PAIR_MAPPER, named);
            case "mapValues": return named == null ? stream.mapValues(Functions.VALUE_MAPPER) : stream.mapValues(Functions.VALUE_MAPPER, named);
            case "flatMap": return named == null ? stream.flatMap(Functions.PAIRS_MAPPER) : stream.flatMap(Functions.PAIRS_MAPPER, named);
            case "flatMapValues":
                return named == null ? stream.flatMapValues(Functions.VALUES_MAPPER) : stream.flatMapValues(Functions.VALUES_MAPPER, named);
            case "selectKey": return named == null ? stream.selectKey(Functions.KEY_MAPPER) : stream.selectKey(Functions.KEY_MAPPER, named);
            case "peek": return named == null ? stream.peek((k, v) -> { }) : stream.peek((k, v) -> { }, named);
            case "foreach":
                if (named == null) {
                    stream.foreach((k, v) -> { });
                } else {
                    stream.foreach((k, v) -> { }, named);
                }
                return null;
            case "merge":
                final KStream other = (KStream) handle(call.text("with"));
                return named == null ? stream.merge(other) : stream.merge(other, named);
            case "split": split(call, stream); return stream;
            case "process": return Processors.process(call, stream);
            case "processValues": return Processors.processValues(call, stream);
            case "toTable": return toTable(call, stream);
            default: throw new Call.BadRequest("unknown operator on a stream: " + call.operator());
        }
    }

    private Object onTable(final Call call, final KTable table) {
        final Named named = named(call);
        final Materialized<Object, Object, KeyValueStore<Bytes, byte[]>> store = StoreOptions.materialized(call);
        switch (call.operator()) {
            case "filter":
                return store == null ? named == null ? table.filter(Functions.predicate(call)) : table.filter(Functions.predicate(call), named)
                    : named == null ? table.filter(Functions.predicate(call), store) : table.filter(Functions.predicate(call), named, store);
            case "filterNot":
                return store == null ? named == null ? table.filterNot(Functions.predicate(call)) : table.filterNot(Functions.predicate(call), named)
                    : named == null ? table.filterNot(Functions.predicate(call), store) : table.filterNot(Functions.predicate(call), named, store);
            case "mapValues":
                return store == null ? named == null ? table.mapValues(Functions.VALUE_MAPPER) : table.mapValues(Functions.VALUE_MAPPER, named)
                    : named == null ? table.mapValues(Functions.VALUE_MAPPER, store) : table.mapValues(Functions.VALUE_MAPPER, named, store);
            case "transformValues": return Processors.transformValues(call, table, store);
            case "toStream":
                if (call.has("selectKey")) {
                    return named == null ? table.toStream(Functions.KEY_MAPPER) : table.toStream(Functions.KEY_MAPPER, named);
                }
                return named == null ? table.toStream() : table.toStream(named);
            default: throw new Call.BadRequest("unknown operator on a table: " + call.operator());
        }
    }

    private KStream stream(final Call call) {
        final Consumed consumed = consumed(call);
        if (call.has("pattern")) {
            return builder.stream(Pattern.compile(call.text("pattern")), consumed);
        }
        return call.has("topic") ? builder.stream(call.text("topic"), consumed) : builder.stream(call.texts("topics"), consumed);
    }

    private KTable table(final Call call) {
        final Materialized store = StoreOptions.materialized(call);
        return store == null ? builder.table(call.text("topic"), consumed(call))
            : builder.table(call.text("topic"), consumed(call), store);
    }

    private GlobalKTable globalTable(final Call call) {
        final Materialized store = StoreOptions.materialized(call);
        return store == null ? builder.globalTable(call.text("topic"), consumed(call))
            : builder.globalTable(call.text("topic"), consumed(call), store);
    }

    private static Consumed consumed(final Call call) {
        Consumed consumed = Consumed.with(null, null);
        if (call.has("name")) {
            consumed = consumed.withName(call.text("name"));
        }
        if (call.has("offsetReset")) {
            consumed = OffsetResets.set(consumed, call.text("offsetReset"));
        }
        if (call.has("timestamp")) {
            consumed = consumed.withTimestampExtractor(Functions.EXTRACTOR);
        }
        return consumed;
    }

    private static KGroupedStream groupByKey(final Call call, final KStream stream) {
        return call.has("name") ? stream.groupByKey(Grouped.as(call.text("name"))) : stream.groupByKey();
    }

    private static Object groupBy(final Call call, final Object input) {
        final Grouped grouped = call.has("name") ? Grouped.as(call.text("name")) : null;
        if (input instanceof KTable) {
            final KTable table = (KTable) input;
            return grouped == null ? table.groupBy(Functions.PAIR_MAPPER) : table.groupBy(Functions.PAIR_MAPPER, grouped);
        }
        final KStream stream = (KStream) input;
        return grouped == null ? stream.groupBy(Functions.KEY_MAPPER) : stream.groupBy(Functions.KEY_MAPPER, grouped);
    }

    private static Object windowedBy(final Call call, final Object input) {
        if (call.has("sliding")) {
            final Call window = call.part("sliding");
            final SlidingWindows windows = SlidingWindows.ofTimeDifferenceAndGrace(window.duration("difference"), grace(window));
            return input instanceof CogroupedKStream ? ((CogroupedKStream) input).windowedBy(windows)
                : emitting(call, ((KGroupedStream) input).windowedBy(windows));
        }
        if (call.has("session")) {
            final Call window = call.part("session");
            final SessionWindows windows = SessionWindows.ofInactivityGapAndGrace(window.duration("gap"), grace(window));
            return input instanceof CogroupedKStream ? ((CogroupedKStream) input).windowedBy(windows)
                : emitting(call, ((KGroupedStream) input).windowedBy(windows));
        }
        final Windows windows = timeWindows(call);
        return input instanceof CogroupedKStream ? ((CogroupedKStream) input).windowedBy(windows)
            : emitting(call, ((KGroupedStream) input).windowedBy(windows));
    }

    private static Windows timeWindows(final Call call) {
        if (call.options().containsKey("unlimited")) {
            final Object given = call.options().get("unlimited");
            final Long start = given instanceof Map ? call.part("unlimited").number("start") : null;
            return start == null ? UnlimitedWindows.of() : UnlimitedWindows.of().startOn(Instant.ofEpochMilli(start));
        }
        final Call window = call.part(call.has("hopping") ? "hopping" : "tumbling");
        final TimeWindows windows = TimeWindows.ofSizeAndGrace(window.duration("size"), grace(window));
        return window.has("advance") ? windows.advanceBy(window.duration("advance")) : windows;
    }

    static Duration grace(final Call window) {
        return window.has("grace") ? window.duration("grace") : Duration.ZERO;
    }

    private static boolean emitsOnClose(final Call call) {
        return "onWindowClose".equals(call.text("emit"));
    }

    private static Object emitting(final Call call, final TimeWindowedKStream windowed) {
        return emitsOnClose(call) ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
    }

    private static Object emitting(final Call call, final SessionWindowedKStream windowed) {
        return emitsOnClose(call) ? windowed.emitStrategy(EmitStrategy.onWindowClose()) : windowed;
    }

    private static KTable count(final Call call, final Object input) {
        final Named named = named(call);
        if (input instanceof KGroupedStream) {
            final KGroupedStream grouped = (KGroupedStream) input;
            final Materialized<Object, Long, KeyValueStore<Bytes, byte[]>> store = (Materialized) StoreOptions.materialized(call);
            return store == null ? named == null ? grouped.count() : grouped.count(named)
                : named == null ? grouped.count(store) : grouped.count(named, store);
        }
        if (input instanceof KGroupedTable) {
            final KGroupedTable grouped = (KGroupedTable) input;
            final Materialized<Object, Long, KeyValueStore<Bytes, byte[]>> store = (Materialized) StoreOptions.materialized(call);
            return store == null ? named == null ? grouped.count() : grouped.count(named)
                : named == null ? grouped.count(store) : grouped.count(named, store);
        }
        if (input instanceof TimeWindowedKStream) {
            final TimeWindowedKStream windowed = (TimeWindowedKStream) input;
            final Materialized<Object, Long, WindowStore<Bytes, byte[]>> store = (Materialized) StoreOptions.materialized(call);
            return store == null ? named == null ? windowed.count() : windowed.count(named)
                : named == null ? windowed.count(store) : windowed.count(named, store);
        }
        final SessionWindowedKStream windowed = (SessionWindowedKStream) input;
        final Materialized<Object, Long, SessionStore<Bytes, byte[]>> store = (Materialized) StoreOptions.materialized(call);
        return store == null ? named == null ? windowed.count() : windowed.count(named)
            : named == null ? windowed.count(store) : windowed.count(named, store);
    }

    private static KTable reduce(final Call call, final Object input) {
        final Named named = named(call);
        final Materialized store = StoreOptions.materialized(call);
        if (input instanceof KGroupedStream) {
            final KGroupedStream grouped = (KGroupedStream) input;
            return named == null ? store == null ? grouped.reduce(Functions.REDUCER) : grouped.reduce(Functions.REDUCER, store)
                : grouped.reduce(Functions.REDUCER, named, orUnnamed(store));
        }
        if (input instanceof KGroupedTable) {
            final KGroupedTable grouped = (KGroupedTable) input;
            return named == null ? store == null ? grouped.reduce(Functions.REDUCER, Functions.REDUCER) : grouped.reduce(Functions.REDUCER, Functions.REDUCER, store)
                : grouped.reduce(Functions.REDUCER, Functions.REDUCER, named, orUnnamed(store));
        }
        if (input instanceof TimeWindowedKStream) {
            final TimeWindowedKStream windowed = (TimeWindowedKStream) input;
            return store == null ? named == null ? windowed.reduce(Functions.REDUCER) : windowed.reduce(Functions.REDUCER, named)
                : named == null ? windowed.reduce(Functions.REDUCER, store) : windowed.reduce(Functions.REDUCER, named, store);
        }
        final SessionWindowedKStream windowed = (SessionWindowedKStream) input;
        return store == null ? named == null ? windowed.reduce(Functions.REDUCER) : windowed.reduce(Functions.REDUCER, named)
            : named == null ? windowed.reduce(Functions.REDUCER, store) : windowed.reduce(Functions.REDUCER, named, store);
    }

    private static KTable aggregate(final Call call, final Object input) {
        final Named named = named(call);
        final Materialized store = StoreOptions.materialized(call);
        if (input instanceof KGroupedStream) {
            final KGroupedStream grouped = (KGroupedStream) input;
            return named == null ? store == null ? grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR) : grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR, store)
                : grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR, named, orUnnamed(store));
        }
        if (input instanceof KGroupedTable) {
            final KGroupedTable grouped = (KGroupedTable) input;
            return store == null
                ? named == null ? grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.AGGREGATOR) : grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.AGGREGATOR, named)
                : named == null ? grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.AGGREGATOR, store)
                : grouped.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.AGGREGATOR, named, store);
        }
        if (input instanceof TimeWindowedKStream) {
            final TimeWindowedKStream windowed = (TimeWindowedKStream) input;
            return store == null ? named == null ? windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR) : windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, named)
                : named == null ? windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, store) : windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, named, store);
        }
        if (input instanceof SessionWindowedKStream) {
            final SessionWindowedKStream windowed = (SessionWindowedKStream) input;
            return store == null
                ? named == null ? windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.MERGER) : windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.MERGER, named)
                : named == null ? windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.MERGER, store)
                : windowed.aggregate(Functions.initializer(call), Functions.AGGREGATOR, Functions.MERGER, named, store);
        }
        if (input instanceof CogroupedKStream) {
            final CogroupedKStream cogrouped = (CogroupedKStream) input;
            return store == null ? named == null ? cogrouped.aggregate(Functions.initializer(call)) : cogrouped.aggregate(Functions.initializer(call), named)
                : named == null ? cogrouped.aggregate(Functions.initializer(call), store) : cogrouped.aggregate(Functions.initializer(call), named, store);
        }
        if (input instanceof TimeWindowedCogroupedKStream) {
            final TimeWindowedCogroupedKStream cogrouped = (TimeWindowedCogroupedKStream) input;
            return store == null ? named == null ? cogrouped.aggregate(Functions.initializer(call)) : cogrouped.aggregate(Functions.initializer(call), named)
                : named == null ? cogrouped.aggregate(Functions.initializer(call), store) : cogrouped.aggregate(Functions.initializer(call), named, store);
        }
        final SessionWindowedCogroupedKStream cogrouped = (SessionWindowedCogroupedKStream) input;
        return store == null ? named == null ? cogrouped.aggregate(Functions.initializer(call), Functions.MERGER) : cogrouped.aggregate(Functions.initializer(call), Functions.MERGER, named)
            : named == null ? cogrouped.aggregate(Functions.initializer(call), Functions.MERGER, store) : cogrouped.aggregate(Functions.initializer(call), Functions.MERGER, named, store);
    }

    /** Some overloads take a name only together with a Materialized. */
    private static Materialized orUnnamed(final Materialized store) {
        return store == null ? Materialized.with(null, null) : store;
    }

    private static Suppressed suppressed(final Call call) {
        final Suppressed suppressed = "windowCloses".equals(call.text("until"))
            ? Suppressed.untilWindowCloses((Suppressed.StrictBufferConfig) buffer(call, true))
            : Suppressed.untilTimeLimit(call.duration("timeLimit"), buffer(call, false));
        return call.has("name") ? suppressed.withName(call.text("name")) : suppressed;
    }

    private static Suppressed.BufferConfig buffer(final Call call, final boolean strict) {
        Suppressed.BufferConfig buffer = Suppressed.BufferConfig.unbounded();
        if (call.has("maxRecords")) {
            buffer = buffer.withMaxRecords(call.number("maxRecords"));
        }
        if (call.has("maxBytes")) {
            buffer = buffer.withMaxBytes(call.number("maxBytes"));
        }
        if (strict || "shutDown".equals(call.text("whenFull"))) {
            buffer = buffer.shutDownWhenFull();
        } else if (call.has("maxRecords") || call.has("maxBytes")) {
            buffer = buffer.emitEarlyWhenFull();
        }
        final Map<String, String> overrides = StoreOptions.loggingOverrides(call);
        if (StoreOptions.isLoggingOff(call)) {
            return buffer.withLoggingDisabled();
        }
        return overrides == null ? buffer : buffer.withLoggingEnabled(overrides);
    }

    private void split(final Call call, final KStream stream) {
        final Named named = named(call);
        BranchedKStream splitter = named == null ? stream.split() : stream.split(named);
        for (final Object branch : call.list("branches")) {
            final Branched branched = branched(Call.mapping(branch));
            final Predicate predicate = Functions.predicate(new Call("branch", Call.mapping(branch)));
            splitter = branched == null ? splitter.branch(predicate) : splitter.branch(predicate, branched);
        }
        final Object rest = call.options().get("default");
        if (rest == null || Boolean.FALSE.equals(rest)) {
            splitter.noDefaultBranch();
        } else {
            final Branched branched = branched(Boolean.TRUE.equals(rest) ? Map.of() : Call.mapping(rest));
            if (branched == null) {
                splitter.defaultBranch();
            } else {
                splitter.defaultBranch(branched);
            }
        }
    }

    /** Null if the branch has no options: then the overload without a Branched is called. */
    private Branched branched(final Map<String, Object> options) {
        final Call branch = new Call("branch", options);
        final String name = branch.text("name");
        if (!branch.has("then") && !branch.has("as")) {
            return name == null ? null : Branched.as(name);
        }
        return Branched.withConsumer(child -> {
            final Object result = run(branch.list("then"), child);
            if (branch.has("as")) {
                handles.put(branch.text("as"), result);
            }
        }, name);
    }

    private static void to(final Call call, final KStream stream) {
        final Produced produced = call.has("name") ? Produced.as(call.text("name")) : Produced.with(null, null);
        if (Processors.hasExtractor(call)) {
            stream.to(Processors.extractor(call), produced);
        } else {
            stream.to(call.text("topic"), produced);
        }
    }

    private static Repartitioned repartitioned(final Call call) {
        Repartitioned repartitioned = Repartitioned.with(null, null);
        if (call.has("name")) {
            repartitioned = repartitioned.withName(call.text("name"));
        }
        return call.has("partitions") ? repartitioned.withNumberOfPartitions(call.integer("partitions")) : repartitioned;
    }

    private static KTable toTable(final Call call, final KStream stream) {
        final Named named = named(call);
        final Materialized store = StoreOptions.materialized(call);
        return store == null ? named == null ? stream.toTable() : stream.toTable(named)
            : named == null ? stream.toTable(store) : stream.toTable(named, store);
    }

    static Named named(final Call call) {
        return call.has("name") ? Named.as(call.text("name")) : null;
    }
}
