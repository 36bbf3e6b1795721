package headwater.oracle;

import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.KeyValueBytesStoreSupplier;
import org.apache.kafka.streams.state.SessionBytesStoreSupplier;
import org.apache.kafka.streams.state.StoreBuilder;
import org.apache.kafka.streams.state.StoreSupplier;
import org.apache.kafka.streams.state.Stores;
import org.apache.kafka.streams.state.VersionedBytesStoreSupplier;
import org.apache.kafka.streams.state.WindowBytesStoreSupplier;

import java.time.Duration;
import java.util.HashMap;
import java.util.Map;

/** `Materialized`, store suppliers and store builders of a document. */
@SuppressWarnings({"rawtypes", "unchecked"})
final class StoreOptions {
    private static final Map<Map<String, Object>, StoreBuilder<?>> BUILDERS = new HashMap<>();

    private StoreOptions() {
    }

    /** Null if the document has none. A text is `Materialized.as(text)`. */
    static <S extends StateStore> Materialized<Object, Object, S> materialized(final Call call) {
        final Object given = call.options().get("materialized");
        if (given == null) {
            return null;
        }
        if (given instanceof String) {
            return Materialized.as((String) given);
        }
        final Call options = call.part("materialized");
        Materialized materialized = options.has("supplier") ? ofSupplier(supplier(options.part("supplier")))
            : options.has("store") ? Materialized.as(options.text("store"))
            : Materialized.with(null, null);
        if (options.has("type")) {
            materialized = materialized.withStoreType(inMemory(options)
                ? Materialized.StoreType.IN_MEMORY : Materialized.StoreType.ROCKS_DB);
        }
        if (options.has("retention")) {
            materialized = materialized.withRetention(options.duration("retention"));
        }
        if (options.has("caching")) {
            materialized = options.flag("caching") ? materialized.withCachingEnabled() : materialized.withCachingDisabled();
        }
        final Map<String, String> overrides = loggingOverrides(options);
        if (isLoggingOff(options)) {
            materialized = materialized.withLoggingDisabled();
        } else if (overrides != null) {
            materialized = materialized.withLoggingEnabled(overrides);
        }
        return materialized;
    }

    private static Materialized ofSupplier(final StoreSupplier<?> supplier) {
        if (supplier instanceof WindowBytesStoreSupplier) {
            return Materialized.as((WindowBytesStoreSupplier) supplier);
        }
        if (supplier instanceof SessionBytesStoreSupplier) {
            return Materialized.as((SessionBytesStoreSupplier) supplier);
        }
        return Materialized.as((KeyValueBytesStoreSupplier) supplier);
    }

    /** A store supplier; its kind selects the factory method of `Stores`. */
    static StoreSupplier<?> supplier(final Call options) {
        final String name = options.text("name");
        final boolean inMemory = inMemory(options);
        final Duration retention = options.duration("retention");
        final Duration size = options.duration("windowSize");
        final boolean duplicates = options.flag("retainDuplicates");
        final String kind = options.has("kind") ? options.text("kind") : "keyValue";
        switch (kind) {
            case "keyValue":
                return inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentKeyValueStore(name);
            case "timestampedKeyValue":
                return inMemory ? Stores.inMemoryKeyValueStore(name) : Stores.persistentTimestampedKeyValueStore(name);
            case "versionedKeyValue":
                return Stores.persistentVersionedKeyValueStore(name, retention);
            case "window":
                return inMemory ? Stores.inMemoryWindowStore(name, retention, size, duplicates)
                    : Stores.persistentWindowStore(name, retention, size, duplicates);
            case "timestampedWindow":
                return inMemory ? Stores.inMemoryWindowStore(name, retention, size, duplicates)
                    : Stores.persistentTimestampedWindowStore(name, retention, size, duplicates);
            case "session":
                return inMemory ? Stores.inMemorySessionStore(name, retention) : Stores.persistentSessionStore(name, retention);
            default:
                throw new Call.BadRequest("unknown kind of store: " + kind);
        }
    }

    /** Equal definitions with `shared` are one builder object; each other definition is an object of its own. */
    static StoreBuilder<?> builder(final Call options) {
        if (!options.flag("shared")) {
            return newBuilder(options);
        }
        final Map<String, Object> definition = new HashMap<>(options.options());
        definition.remove("processors");
        definition.putIfAbsent("kind", "keyValue");
        definition.put("type", inMemory(options));
        definition.put("logging", isLoggingOff(options) ? null : loggingOverrides(options) == null ? Map.of() : loggingOverrides(options));
        definition.put("retention", options.duration("retention"));
        definition.put("windowSize", options.duration("windowSize"));
        definition.put("retainDuplicates", options.flag("retainDuplicates"));
        return BUILDERS.computeIfAbsent(definition, ignored -> newBuilder(options));
    }

    /** To be called before each document. */
    static void forgetBuilders() {
        BUILDERS.clear();
    }

    private static StoreBuilder<?> newBuilder(final Call options) {
        final StoreSupplier<?> supplier = supplier(options);
        final String kind = options.has("kind") ? options.text("kind") : "keyValue";
        StoreBuilder<?> builder;
        switch (kind) {
            case "timestampedKeyValue":
                builder = Stores.timestampedKeyValueStoreBuilder((KeyValueBytesStoreSupplier) supplier, Serdes.String(), Serdes.String());
                break;
            case "versionedKeyValue":
                builder = Stores.versionedKeyValueStoreBuilder((VersionedBytesStoreSupplier) supplier, Serdes.String(), Serdes.String());
                break;
            case "window":
                builder = Stores.windowStoreBuilder((WindowBytesStoreSupplier) supplier, Serdes.String(), Serdes.String());
                break;
            case "timestampedWindow":
                builder = Stores.timestampedWindowStoreBuilder((WindowBytesStoreSupplier) supplier, Serdes.String(), Serdes.String());
                break;
            case "session":
                builder = Stores.sessionStoreBuilder((SessionBytesStoreSupplier) supplier, Serdes.String(), Serdes.String());
                break;
            default:
                builder = Stores.keyValueStoreBuilder((KeyValueBytesStoreSupplier) supplier, Serdes.String(), Serdes.String());
        }
        if (options.has("caching")) {
            builder = options.flag("caching") ? builder.withCachingEnabled() : builder.withCachingDisabled();
        }
        final Map<String, String> overrides = loggingOverrides(options);
        if (isLoggingOff(options)) {
            builder = builder.withLoggingDisabled();
        } else if (overrides != null) {
            builder = builder.withLoggingEnabled(overrides);
        }
        return builder;
    }

    static boolean isLoggingOff(final Call options) {
        return Boolean.FALSE.equals(options.options().get("logging"));
    }

    /** Null if logging is not enabled explicitly. */
    static Map<String, String> loggingOverrides(final Call options) {
        final Object logging = options.options().get("logging");
        return logging == null || Boolean.FALSE.equals(logging) ? null
            : Boolean.TRUE.equals(logging) ? new HashMap<>() : Call.configs(logging);
    }

    private static boolean inMemory(final Call options) {
        return "in-memory".equals(options.text("type"));
    }
}
