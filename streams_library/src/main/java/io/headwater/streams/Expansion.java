package io.headwater.streams;

import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.InvalidPartitionsException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;

/**
 * Expands internal topics. {@code createPartitions} is not atomic, so after each request the topics are read again and
 * only topics that are still too small are requested again (KIP-878).
 */
final class Expansion {
    private static final Logger LOG = LoggerFactory.getLogger(Expansion.class);
    private static final int REQUEST_MS = 10_000;
    private static final long LEAST_BACKOFF_MS = 100;
    private static final long MOST_BACKOFF_MS = 2_000;

    enum Outcome { DONE, NOT_YET, GAVE_UP }

    private final LeaderContext context;
    private final Collection<ExpectedTopic> expected;
    private final Set<String> accepted = new HashSet<>();
    private Map<String, ActualTopic> actual;

    Expansion(final LeaderContext context, final Collection<ExpectedTopic> expected, final Map<String, ActualTopic> actual) {
        this.context = context;
        this.expected = expected;
        this.actual = actual;
    }

    /** Returns the topics as they were read last. */
    Map<String, ActualTopic> actual() {
        return actual;
    }

    /** Expands until no topic is too small, but for {@code budgetMs} at most. */
    Outcome run(final long budgetMs) {
        final long started = System.currentTimeMillis();
        long backoff = LEAST_BACKOFF_MS;
        List<TopicComparison.Count> tooFew = tooFew();
        context.clock.begin(tooFew.toString());
        while (!tooFew.isEmpty()) {
            if (context.clock.isExpired(System.currentTimeMillis())) {
                reportFailure(tooFew);
                return Outcome.GAVE_UP;
            }
            final boolean failed = request(tooFew);
            final Map<String, ActualTopic> before = actual;
            actual = ClusterTopics.read(context.admin, names(), false, budgetMs);
            final boolean progressed = actual.values().stream()
                .anyMatch(topic -> before.get(topic.name) == null || before.get(topic.name).partitions < topic.partitions);
            if (progressed) {
                context.clock.success();
                backoff = LEAST_BACKOFF_MS;
            } else if (failed) {
                context.clock.failure(System.currentTimeMillis());
            }
            tooFew = tooFew();
            if (!tooFew.isEmpty()) {
                if (System.currentTimeMillis() - started >= budgetMs) {
                    return Outcome.NOT_YET;
                }
                ClusterTopics.sleep(backoff);
                backoff = Math.min(2 * backoff, MOST_BACKOFF_MS);
            }
        }
        return Outcome.DONE;
    }

    private void reportFailure(final List<TopicComparison.Count> tooFew) {
        if (context.clock.report(System.currentTimeMillis(), tooFew.toString())) {
            context.metrics.countFailure();
        }
        LOG.warn("Gave up the expansion of internal topics after {} ms without success ({}): {}. Expand them"
                + " (kafka-topics.sh, or pulumi up), then restart an instance.",
            context.config.timeoutMs, SupplierConfig.AUTOSCALING_TIMEOUT, tooFew);
    }

    /** Requests the expansion of topics; returns whether a request failed. */
    private boolean request(final List<TopicComparison.Count> tooFew) {
        final Map<String, NewPartitions> requested = new HashMap<>();
        for (final TopicComparison.Count count : tooFew) {
            if (!accepted.contains(count.topic)) {
                requested.put(count.topic, NewPartitions.increaseTo(count.expected));
            }
        }
        if (requested.isEmpty()) {
            return false;
        }
        boolean failed = false;
        final Map<String, KafkaFuture<Void>> results;
        try {
            results = context.admin.createPartitions(requested,
                new CreatePartitionsOptions().timeoutMs(REQUEST_MS).retryOnQuotaViolation(false)).values();
        } catch (final KafkaException error) {
            LOG.warn("Expansion of internal topics {} failed, retrying: {}", requested.keySet(), error.toString());
            return true;
        }
        for (final Map.Entry<String, KafkaFuture<Void>> result : results.entrySet()) {
            try {
                result.getValue().get();
                accepted.add(result.getKey());
                LOG.info("Expanded internal topic {} to {} partitions.", result.getKey(),
                    requested.get(result.getKey()).totalCount());
            } catch (final ExecutionException error) {
                if (error.getCause() instanceof InvalidPartitionsException) {
                    LOG.info("Another client expanded internal topic {}.", result.getKey());
                } else {
                    failed = true;
                    LOG.warn("Expansion of internal topic {} failed, retrying: {}{}", result.getKey(),
                        error.getCause().toString(), Permissions.hint(error.getCause(), "Alter", result.getKey()));
                }
            } catch (final InterruptedException error) {
                throw new InterruptException(error);
            }
        }
        return failed;
    }

    private List<TopicComparison.Count> tooFew() {
        return TopicComparison.of(expected, actual, context.topicIds).tooFew;
    }

    private List<String> names() {
        return expected.stream().map(topic -> topic.name).filter(actual::containsKey).collect(Collectors.toList());
    }
}
