package headwater.oracle;

import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.coordinator.common.runtime.KRaftCoordinatorMetadataImage;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.coordinator.group.streams.topics.InternalTopicManager;
import org.apache.kafka.image.AclsImage;
import org.apache.kafka.image.ClientQuotasImage;
import org.apache.kafka.image.ClusterImage;
import org.apache.kafka.image.ConfigurationsImage;
import org.apache.kafka.image.DelegationTokenImage;
import org.apache.kafka.image.FeaturesImage;
import org.apache.kafka.image.MetadataImage;
import org.apache.kafka.image.MetadataProvenance;
import org.apache.kafka.image.ProducerIdsImage;
import org.apache.kafka.image.ScramImage;
import org.apache.kafka.image.TopicsImage;
import org.apache.kafka.storage.internals.log.LogConfig;

import java.util.Map;
import java.util.Properties;

/** Methods of brokers whose parameters each release changes. */
final class GroupCoordinator {
    private GroupCoordinator() {
    }

    static ConfiguredTopology configure(final StreamsTopology topology, final TopicsImage topics) {
        final MetadataImage image = new MetadataImage(
            MetadataProvenance.EMPTY, FeaturesImage.EMPTY, ClusterImage.EMPTY, topics, ConfigurationsImage.EMPTY, ClientQuotasImage.EMPTY,
            ProducerIdsImage.EMPTY, AclsImage.EMPTY, ScramImage.EMPTY, DelegationTokenImage.EMPTY);
        return InternalTopicManager.configureTopics(
            new LogContext(), 0, topology, new KRaftCoordinatorMetadataImage(image), Time.SYSTEM);
    }

    static void validate(final Map<String, String> topicConfigs) {
        final Properties properties = new Properties();
        properties.putAll(topicConfigs);
        LogConfig.validate(properties);
    }
}
