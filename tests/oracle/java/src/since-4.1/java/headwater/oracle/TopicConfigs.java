package headwater.oracle;

import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Kafka's table of topic configs, and the checks that a broker makes when a topic is created. */
final class TopicConfigs {
    private TopicConfigs() {
    }

    /** One mapping for each config that a user may set: name, type, and the text of the allowed values or null. */
    static List<Object> table() {
        final List<Object> table = new ArrayList<>();
        for (final String name : LogConfig.nonInternalConfigNames()) {
            final ConfigDef.ConfigKey key = LogConfig.configKeys().get(name);
            final Map<String, Object> row = new HashMap<>();
            row.put("name", name);
            row.put("type", key.type.name());
            row.put("allowed", key.validator == null ? null : key.validator.toString());
            table.add(row);
        }
        return table;
    }

    /** For each mapping of configs the message of the exception, null if the broker accepts it. */
    static List<Object> refusals(final List<Object> all) {
        final List<Object> refusals = new ArrayList<>();
        for (final Object configs : all) {
            try {
                GroupCoordinator.validate(Call.configs(configs));
                refusals.add(null);
            } catch (final RuntimeException error) {
                refusals.add(error.getMessage());
            }
        }
        return refusals;
    }
}
