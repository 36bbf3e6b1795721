package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.InterruptException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;

/** Corrects configs of internal topics in automatic mode. None of the corrections deletes a record. */
final class Correction {
    private static final Logger LOG = LoggerFactory.getLogger(Correction.class);

    private Correction() {
    }

    /** Corrects what is possible; the rest is logged. */
    static void apply(final Admin admin, final List<Misconfiguration> misconfigurations) {
        final Map<ConfigResource, Collection<AlterConfigOp>> changes = new HashMap<>();
        for (final Misconfiguration each : misconfigurations) {
            changes.computeIfAbsent(new ConfigResource(ConfigResource.Type.TOPIC, each.topic), key -> new ArrayList<>())
                .add(new AlterConfigOp(new ConfigEntry(each.config, each.repaired), AlterConfigOp.OpType.SET));
        }
        final Map<ConfigResource, KafkaFuture<Void>> results = admin.incrementalAlterConfigs(changes).values();
        for (final Misconfiguration each : misconfigurations) {
            try {
                results.get(new ConfigResource(ConfigResource.Type.TOPIC, each.topic)).get();
                LOG.warn("Reconfigured internal topic {}: {} was {}, and is {} now, because {}.",
                    each.topic, each.config, each.found, each.repaired, each.reason);
            } catch (final ExecutionException error) {
                LOG.warn("{} It could not be corrected: {}{}", each.sentence(), error.getCause().toString(),
                    Permissions.hint(error.getCause(), "AlterConfigs", each.topic));
            } catch (final InterruptedException error) {
                throw new InterruptException(error);
            }
        }
    }
}
