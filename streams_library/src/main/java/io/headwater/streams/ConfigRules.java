package io.headwater.streams;

import java.math.BigInteger;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Finds the configs of an internal topic that lose data, as {@code InternalTopicManager#validate} of Kafka Streams does
 * (which no version of it calls), and the configs that differ from the code's own.
 */
final class ConfigRules {
    private static final String POLICY = "cleanup.policy";
    private static final String RETENTION = "retention.ms";
    private static final String BYTES = "retention.bytes";
    private static final String LAG = "min.compaction.lag.ms";
    private static final String COMPACT = "compact";
    private static final String DELETE = "delete";
    private static final Set<String> WITH_RULES = Set.of(POLICY, RETENTION, BYTES, LAG);
    /** Kafka Streams sets it for repartition topics. Another size loses nothing. */
    private static final String SEGMENT_BYTES = "segment.bytes";
    private static final String DEFAULT_SEGMENT_BYTES = "52428800";

    private ConfigRules() {
    }

    /** Returns what is misconfigured. A topic without configs (they may not be read) has no misconfiguration. */
    static List<Misconfiguration> check(final ExpectedTopic expected, final ActualTopic actual) {
        if (actual.configs.isEmpty()) {
            return Collections.emptyList();
        }
        final List<Misconfiguration> found = new ArrayList<>();
        final Set<String> policies = policies(actual.configs.get(POLICY));
        final Set<String> expectedPolicies = policies(expected.configs.get(POLICY));
        if (policies.contains(DELETE) && !expectedPolicies.contains(DELETE)) {
            found.add(of(expected, actual, POLICY, COMPACT, "records that the state still needs are deleted"));
        } else if (policies.contains(COMPACT) && !expectedPolicies.contains(COMPACT) && expected.isRepartition()) {
            found.add(of(expected, actual, POLICY, DELETE, "records with the same key are removed before they are read"));
        } else if (policies.contains(DELETE)) {
            checkRetention(expected, actual, found);
        }
        if (isLess(actual.configs.get(LAG), expected.configs.get(LAG))) {
            found.add(of(expected, actual, LAG, expected.configs.get(LAG), "the versions of a key must be kept longer"));
        }
        for (final Map.Entry<String, String> entry : expected.configs.entrySet()) {
            final String value = actual.configs.get(entry.getKey());
            if (!WITH_RULES.contains(entry.getKey()) && value != null && !value.equals(entry.getValue())
                && !isDefaultSegmentSize(entry)) {
                found.add(of(expected, actual, entry.getKey(), entry.getValue(), "the application sets another value"));
            }
        }
        return found;
    }

    private static void checkRetention(
        final ExpectedTopic expected, final ActualTopic actual, final List<Misconfiguration> found
    ) {
        final String required = expected.configs.getOrDefault(RETENTION, "-1");
        if (isShorter(actual.configs.get(RETENTION), required)) {
            final String reason = "records must be kept " + ("-1".equals(required) ? "until they are processed"
                : "for " + required + " ms at least");
            found.add(of(expected, actual, RETENTION, required, reason));
        }
        final String bytes = expected.configs.getOrDefault(BYTES, "-1");
        if (isShorter(actual.configs.get(BYTES), bytes)) {
            found.add(of(expected, actual, BYTES, bytes, "records are deleted before their time"));
        }
    }

    private static Misconfiguration of(
        final ExpectedTopic expected, final ActualTopic actual, final String key, final String repaired,
        final String reason
    ) {
        return new Misconfiguration(expected.name, key, actual.configs.get(key), repaired, reason);
    }

    private static boolean isDefaultSegmentSize(final Map.Entry<String, String> entry) {
        return SEGMENT_BYTES.equals(entry.getKey()) && DEFAULT_SEGMENT_BYTES.equals(entry.getValue());
    }

    /** Returns whether a bound is less than the required one; negative bounds are unlimited. */
    private static boolean isShorter(final String found, final String required) {
        final BigInteger value = number(found);
        final BigInteger bound = number(required);
        if (value == null || bound == null || value.signum() < 0) {
            return false;
        }
        return bound.signum() < 0 || value.compareTo(bound) < 0;
    }

    private static boolean isLess(final String found, final String required) {
        final BigInteger value = number(found);
        final BigInteger bound = number(required);
        return value != null && bound != null && value.compareTo(bound) < 0;
    }

    /** Returns the number, or null: brokers refuse other values themselves. */
    private static BigInteger number(final String text) {
        return text != null && text.trim().matches("[+-]?[0-9]+") ? new BigInteger(text.trim()) : null;
    }

    private static Set<String> policies(final String value) {
        return value == null ? Collections.emptySet() : Arrays.stream(value.split(",")).map(String::trim)
            .filter(each -> !each.isEmpty()).collect(Collectors.toCollection(TreeSet::new));
    }
}
