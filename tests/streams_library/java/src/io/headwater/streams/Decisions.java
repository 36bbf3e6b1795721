package io.headwater.streams;

import org.apache.kafka.common.Uuid;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
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
}
