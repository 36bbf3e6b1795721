package headwater.oracle;

import org.apache.kafka.streams.StreamsConfig;

import java.lang.reflect.Field;
import java.util.Set;
import java.util.TreeSet;

/** The keys of `StreamsConfig`, internal ones included. */
final class ConfigKeys {
    private ConfigKeys() {
    }

    static Set<String> all() {
        final Set<String> keys = new TreeSet<>(StreamsConfig.configDef().names());
        for (final Field field : StreamsConfig.InternalConfig.class.getDeclaredFields()) {
            try {
                if (field.getType() == String.class) {
                    keys.add((String) field.get(null));
                }
            } catch (final IllegalAccessException error) {
                throw new IllegalStateException(error);
            }
        }
        return keys;
    }
}
