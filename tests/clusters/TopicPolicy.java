import java.util.Arrays;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.PolicyViolationException;
import org.apache.kafka.server.policy.AlterConfigPolicy;
import org.apache.kafka.server.policy.CreateTopicPolicy;

/** Refuses topics as managed services do: by the settings that they may not have, and by their replicas. */
public class TopicPolicy {
    private Set<String> settable = Set.of();
    private Set<String> refused = Set.of();
    private int replicas = -1;

    public static class Create extends TopicPolicy implements CreateTopicPolicy {
        @Override
        public void validate(RequestMetadata request) {
            if (!isInternal(request.topic())) {
                checkSettings(request.configs());
                checkReplicas(request);
            }
        }
    }

    public static class Alter extends TopicPolicy implements AlterConfigPolicy {
        @Override
        public void validate(RequestMetadata request) {
            ConfigResource resource = request.resource();
            if (resource.type() == ConfigResource.Type.TOPIC && !isInternal(resource.name())) {
                checkSettings(request.configs());
            }
        }
    }

    public void configure(Map<String, ?> configs) {
        settable = words(configs.get("test.policy.settable"));
        refused = words(configs.get("test.policy.refused"));
        Object factor = configs.get("test.policy.replicas");
        replicas = factor == null ? -1 : Integer.parseInt(factor.toString());
    }

    public void close() {
    }

    protected void checkSettings(Map<String, String> settings) {
        for (String key : settings.keySet()) {
            if (refused.contains(key) || !settable.isEmpty() && !settable.contains(key)) {
                throw new PolicyViolationException(key + " cannot be set on this cluster");
            }
        }
    }

    protected void checkReplicas(CreateTopicPolicy.RequestMetadata request) {
        Short asked = request.replicationFactor();
        if (replicas > 0 && asked != null && asked > 0 && asked != replicas) {
            throw new PolicyViolationException("topics have " + replicas + " replicas on this cluster");
        }
    }

    /** Brokers create these topics for themselves. */
    protected static boolean isInternal(String topic) {
        return topic.startsWith("__");
    }

    private static Set<String> words(Object list) {
        String text = list == null ? "" : list.toString();
        return text.isEmpty() ? Set.of() : new HashSet<>(Arrays.asList(text.split(",")));
    }
}
