package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.common.Uuid;

import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;

/** What the leaders of one application instance share: configs, clients, and what earlier assignments have learned. */
final class LeaderContext {
    /** A failed expansion is tried again after this time, in the next rebalance (KIP-878). */
    static final long FOLLOW_UP_MS = 10_000;

    final SupplierConfig config;
    final Admin admin;
    final AdminProxy proxy;
    final AutoscalingClock clock;
    final ParallelismMetrics metrics;
    final OwnershipReader ownership;
    /** Topic → id at the last check. */
    final Map<String, Uuid> topicIds = new HashMap<>();
    /** Topics whose ids were compared with the recorded ones: only {@code pulumi up} changes the records. */
    final Set<String> comparedTopics = new HashSet<>();
    /** Topic → partition count in the last assignment without difference; empty if there was none. */
    Map<String, Integer> lastCounts = Collections.emptyMap();

    LeaderContext(final SupplierConfig config, final Admin admin, final String clientId, final OwnershipReader ownership) {
        this.config = config;
        this.ownership = ownership;
        this.admin = admin;
        this.clock = new AutoscalingClock(config.timeoutMs);
        this.metrics = new ParallelismMetrics(clientId, config.isAutoscaling);
        this.proxy = new AdminProxy(admin, metrics::close);
    }

    Admin adminOfApplication() {
        return proxy.asAdmin();
    }
}
