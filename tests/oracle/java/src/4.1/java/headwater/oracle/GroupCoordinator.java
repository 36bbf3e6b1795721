package headwater.oracle;

import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.apache.kafka.image.TopicsImage;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.util.Map;
import java.util.Properties;

/** Methods of brokers whose parameters each release changes. */
final class GroupCoordinator {
    private GroupCoordinator() {
    }

    static ConfiguredTopology configure(final StreamsTopology topology, final TopicsImage topics) {
        return InternalTopicManager.configureTopics(new LogContext(), 0, topology, topics);
    }

    static void validate(final Map<String, String> topicConfigs) {
        final Properties properties = new Properties();
        properties.putAll(topicConfigs);
        LogConfig.validate(properties);
    }
}
