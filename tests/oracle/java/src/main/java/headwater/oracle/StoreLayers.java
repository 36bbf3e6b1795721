package headwater.oracle;

import org.apache.kafka.streams.processor.StateStore;
import org.apache.kafka.streams.state.internals.WrappedStateStore;

import java.lang.reflect.Field;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What a built store consists of: the classes of its layers from the outermost, and its settings. */
public final class StoreLayers {
    private static final Map<String, List<String>> SETTINGS = Map.of(
        "retention", List.of("retentionPeriod", "historyRetention"),
        "windowSize", List.of("windowSize", "windowSizeMs"),
        "retainDuplicates", List.of("retainDuplicates"),
        "loggingEnabled", List.of("loggingEnabled"));

    private StoreLayers() {
    }

    /** `layers` are simple names of classes; settings that no layer has are missing. */
    public static Map<String, Object> of(final StateStore store) {
        final Map<String, Object> found = new HashMap<>();
        final List<Object> layers = new ArrayList<>();
        for (Object layer = store; layer != null; layer = below(layer)) {
            layers.add(layer.getClass().getSimpleName());
            for (final Map.Entry<String, List<String>> setting : SETTINGS.entrySet()) {
                for (final String name : setting.getValue()) {
                    final Object value = field(layer, name);
                    if (value != null) {
                        found.putIfAbsent(setting.getKey(), value);
                    }
                }
            }
        }
        found.put("layers", layers);
        found.put("persistent", store.persistent());
        return found;
    }

    private static Object below(final Object layer) {
        if (layer instanceof WrappedStateStore) {
            return ((WrappedStateStore<?, ?, ?>) layer).wrapped();
        }
        for (final String name : List.of("store", "inner")) {
            final Object inner = field(layer, name);
            if (inner instanceof StateStore) {
                return inner;
            }
        }
        return null;
    }

    private static Object field(final Object object, final String name) {
        for (Class<?> type = object.getClass(); type != null; type = type.getSuperclass()) {
            try {
                final Field field = type.getDeclaredField(name);
                field.setAccessible(true);
                return field.get(object);
            } catch (final NoSuchFieldException missing) {
                continue;
            } catch (final ReflectiveOperationException | RuntimeException error) {
                throw new IllegalStateException(error);
            }
        }
        return null;
    }
}
