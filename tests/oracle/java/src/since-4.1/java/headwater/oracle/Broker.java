package headwater.oracle;

import org.apache.kafka.clients.consumer.internals.StreamsRebalanceData;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.message.StreamsGroupHeartbeatRequestData;
import org.apache.kafka.coordinator.group.streams.StreamsTopology;
import org.apache.kafka.coordinator.group.streams.topics.ConfiguredTopology;
import org.apache.kafka.image.TopicImage;
import org.apache.kafka.image.TopicsImage;
import org.apache.kafka.metadata.LeaderRecoveryState;
import org.apache.kafka.metadata.PartitionRegistration;
import org.apache.kafka.streams.processor.internals.SentTopology;
import org.apache.kafka.streams.processor.internals.StartedTopology;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The broker's side of the streams protocol (KIP-1071): the group coordinator's own code, without a broker. */
final class Broker {
    private static final String CLIENT_SIDE =
        "org.apache.kafka.clients.consumer.internals.StreamsGroupHeartbeatRequestManager$HeartbeatState";

    private Broker() {
    }

    static Map<String, Object> counts(final StartedTopology started, final Map<String, Integer> partitions) {
        final StreamsTopology topology = StreamsTopology.fromHeartbeatRequest(
            new StreamsGroupHeartbeatRequestData.Topology().setEpoch(0).setSubtopologies(onTheWire(SentTopology.of(started))));
        final ConfiguredTopology configured = GroupCoordinator.configure(topology, imageOf(partitions));
        final Map<String, Object> counts = new TreeMap<>();
        final Map<String, Object> tasks = new TreeMap<>();
        configured.internalTopicsToBeCreated().forEach((name, topic) -> counts.put(name, topic.numPartitions()));
        configured.subtopologies().ifPresent(all -> all.forEach((id, part) -> tasks.put(id, part.numberOfTasks())));
        final Map<String, Object> result = new HashMap<>(Map.of("counts", counts, "tasks", tasks));
        configured.topicConfigurationException().ifPresent(problem -> {
            result.put("status", problem.status().name());
            result.put("detail", problem.getMessage());
        });
        return result;
    }

    @SuppressWarnings("unchecked")
    private static List<StreamsGroupHeartbeatRequestData.Subtopology> onTheWire(
        final Map<String, StreamsRebalanceData.Subtopology> sent
    ) {
        try {
            final Method method = Class.forName(CLIENT_SIDE).getDeclaredMethod("fromStreamsToHeartbeatRequest", Map.class);
            method.setAccessible(true);
            return (List<StreamsGroupHeartbeatRequestData.Subtopology>) method.invoke(null, sent);
        } catch (final InvocationTargetException error) {
            throw (RuntimeException) error.getCause();
        } catch (final ReflectiveOperationException error) {
            throw new LinkageError("StreamsGroupHeartbeatRequestManager has changed", error);
        }
    }

    private static TopicsImage imageOf(final Map<String, Integer> partitions) {
        TopicsImage image = TopicsImage.EMPTY;
        for (final Map.Entry<String, Integer> entry : partitions.entrySet()) {
            final Map<Integer, PartitionRegistration> registrations = new HashMap<>();
            for (int partition = 0; partition < entry.getValue(); partition++) {
                registrations.put(partition, new PartitionRegistration.Builder()
                    .setReplicas(new int[] {0})
                    .setDirectories(new Uuid[] {Uuid.fromString("AAAAAAAAAAAAAAAAAAAAAQ")})
                    .setIsr(new int[] {0})
                    .setLeader(0)
                    .setLeaderRecoveryState(LeaderRecoveryState.RECOVERED)
                    .setLeaderEpoch(0)
                    .setPartitionEpoch(0)
                    .build());
            }
            image = image.including(new TopicImage(entry.getKey(), Uuid.randomUuid(), registrations));
        }
        return image;
    }
}
