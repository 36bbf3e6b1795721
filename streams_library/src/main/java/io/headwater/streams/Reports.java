package io.headwater.streams;

import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;

/** The texts of errors and hints. Their readers are operators. */
final class Reports {
    private static final String UNFINISHED_RESHARD =
        "If a headwater reshard of the application is not complete, run it again and change nothing else. Otherwise: ";

    private Reports() {
    }

    static MissingInternalTopicsException missing(final Collection<String> missing, final Collection<String> recreated) {
        final List<String> sentences = new ArrayList<>();
        if (!missing.isEmpty()) {
            sentences.add("Internal topics do not exist: " + String.join(", ", missing) + ".");
        }
        if (!recreated.isEmpty()) {
            sentences.add("Internal topics were deleted and re-created, their records are lost: "
                + String.join(", ", recreated) + ".");
        }
        sentences.add("If the application starts for the first time, set it up (pulumi up, or InternalTopics.initialize)."
            + " Otherwise records are lost: check who deleted the topics, and restore or reset the application before you"
            + " set it up again.");
        final TreeSet<String> all = new TreeSet<>(missing);
        all.addAll(recreated);
        return new MissingInternalTopicsException(String.join(" ", sentences), all);
    }

    static MisconfiguredInternalTopicException misconfigured(final Collection<Misconfiguration> configs) {
        return new MisconfiguredInternalTopicException(
            configs.stream().map(Misconfiguration::sentence).collect(Collectors.joining(" ")));
    }

    static MisconfiguredInternalTopicException miscounted(final TopicComparison found) {
        return new MisconfiguredInternalTopicException(counts(found));
    }

    /** Returns the error of a start before all state has moved. */
    static MisconfiguredInternalTopicException resharded(final String application) {
        return new MisconfiguredInternalTopicException("A headwater reshard of " + application + " is not complete. If it"
            + " still runs, wait until it ends. Otherwise run it again, with the same options, and change nothing else. The"
            + " application does not start before, because it would process records without the state of their keys.");
    }

    /** Returns what to do about wrong partition counts. */
    static String counts(final TopicComparison found) {
        final List<String> sentences = new ArrayList<>();
        for (final TopicComparison.Count count : found.tooMany) {
            sentences.add(count + ". Partitions cannot be removed: expand the source topics, or reset the application.");
        }
        if (!found.tooFew.isEmpty()) {
            sentences.add(found.tooFew.stream().map(TopicComparison.Count::toString).collect(Collectors.joining(", "))
                + ". Set " + SupplierConfig.AUTOSCALING + "=true, run pulumi up, or expand them: "
                + found.tooFew.stream().map(count -> "kafka-topics.sh --bootstrap-server BROKER --alter --topic "
                    + count.topic + " --partitions " + count.expected).collect(Collectors.joining("; "))
                + ". Keys stay on their partitions only with static partitioning or in stateless applications.");
        }
        return (sentences.isEmpty() ? "" : UNFINISHED_RESHARD) + String.join(" ", sentences);
    }
}
