package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsResult;
import org.apache.kafka.clients.admin.internals.CoordinatorKey;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.CoordinatorNotAvailableException;
import org.apache.kafka.common.errors.GroupAuthorizationException;

import java.lang.reflect.Constructor;
import java.lang.reflect.Proxy;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Prints the decision about each line of a file: name, expected and found as {@code partitions;config=value;...}. */
public final class Decisions {
    private Decisions() {
    }

    public static void main(final String[] arguments) throws Exception {
        for (final String line : Files.readAllLines(Path.of(arguments[0]))) {
            final String[] words = line.split("\t");
            final ExpectedTopic expected = new ExpectedTopic(words[0], count(words[1]), (short) -1, configs(words[1]));
            final ActualTopic found = new ActualTopic(words[0], Uuid.ZERO_UUID, count(words[2]), configs(words[2]));
            final TopicComparison compared = TopicComparison.of(List.of(expected), Map.of(words[0], found), Map.of());
            final StringBuilder text = new StringBuilder();
            compared.tooFew.forEach(each -> text.append("too few; "));
            compared.tooMany.forEach(each -> text.append("too many; "));
            compared.misconfigured.forEach(each -> text.append(each.config + "=" + each.repaired + "; "));
            System.out.println(text.length() == 0 ? "equal" : text.substring(0, text.length() - 2));
        }
        System.out.println(clock());
        System.out.println(journal(List.of("s-changelog"), 0, null));
        System.out.println(journal(List.of("s-changelog"), 2, new CoordinatorNotAvailableException("loading")));
        System.out.println(journal(List.of("s-changelog"), 100, new CoordinatorNotAvailableException("gone")));
        System.out.println(journal(List.of("s-changelog"), 1, new GroupAuthorizationException("shop")));
        System.out.println(journal(List.of(), 1, new GroupAuthorizationException("shop")));
    }

    private static int count(final String text) {
        return Integer.parseInt(text.split(";")[0]);
    }

    private static Map<String, String> configs(final String text) {
        final Map<String, String> configs = new TreeMap<>();
        Arrays.stream(text.split(";")).skip(1).forEach(entry ->
            configs.put(entry.substring(0, entry.indexOf('=')), entry.substring(entry.indexOf('=') + 1)));
        return configs;
    }

    private static String clock() {
        final AutoscalingClock clock = new AutoscalingClock(100);
        final StringBuilder history = new StringBuilder();
        clock.failure(1_000);
        clock.failure(1_050);
        history.append(clock.isExpired(1_099)).append(clock.isExpired(1_100)); // counted from the first failure
        history.append(clock.report(1_100, "a")).append(clock.report(1_200, "a")); // reported once
        clock.begin("a");
        history.append(clock.isExpired(1_300));
        clock.begin("b"); // something else is to be expanded
        history.append(clock.isExpired(1_300));
        clock.failure(1_300);
        clock.success();
        clock.failure(1_390);
        history.append(clock.isExpired(1_400)).append(clock.isExpired(1_490));
        return history.toString();
    }

    /**
     * Returns the answer about the journal of a reshard, or the class of the exception, and the number of requests; then
     * the command in its message. The first requests fail; then nothing is committed.
     */
    private static String journal(final List<String> changelogs, final int failures, final Throwable error) {
        final int[] requests = {0};
        final Admin admin = (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), new Class<?>[] {Admin.class},
            (proxy, method, arguments) -> {
                final Integer timeoutMs = ((ListConsumerGroupOffsetsOptions) arguments[1]).timeoutMs();
                if (timeoutMs == null || timeoutMs < 1 || timeoutMs > 1_000) {
                    throw new IllegalArgumentException("timeout " + timeoutMs);
                }
                requests[0]++;
                return offsets(requests[0] <= failures ? TopicAnswers.failed(error)
                    : KafkaFuture.completedFuture(Collections.singletonMap(
                        new TopicPartition("s-changelog", 0), null)));
            });
        try {
            return ReshardJournal.exists(admin, "shop", changelogs, 1_000) + " " + requests[0];
        } catch (final RuntimeException thrown) {
            final int at = thrown.getMessage().indexOf("kafka-acls.sh");
            return thrown.getClass().getSimpleName() + " " + (requests[0] == 1 ? "1" : "again")
                + (at < 0 ? "" : " " + thrown.getMessage().substring(at));
        }
    }

    private static ListConsumerGroupOffsetsResult offsets(
        final KafkaFuture<Map<TopicPartition, OffsetAndMetadata>> future
    ) throws ReflectiveOperationException {
        final Constructor<ListConsumerGroupOffsetsResult> constructor =
            ListConsumerGroupOffsetsResult.class.getDeclaredConstructor(Map.class);
        constructor.setAccessible(true);
        return constructor.newInstance(Map.of(CoordinatorKey.byGroupId("shop"), future));
    }
}
