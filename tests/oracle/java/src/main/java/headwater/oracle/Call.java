package headwater.oracle;

import java.time.Duration;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** The options of one call in a topology document, read by type. Absent ones are null. */
record Call(String operator, Map<String, Object> options) {
    private static final Pattern DURATION = Pattern.compile("(\\d+)(ms|s|m|h|d)");
    private static final Map<String, ChronoUnit> UNITS = Map.of(
        "ms", ChronoUnit.MILLIS, "s", ChronoUnit.SECONDS, "m", ChronoUnit.MINUTES, "h", ChronoUnit.HOURS, "d", ChronoUnit.DAYS);

    static Call of(final Map<String, Object> step) {
        if (step.size() != 1) {
            throw new BadRequest("a step has exactly one key: " + step);
        }
        final Map.Entry<String, Object> entry = step.entrySet().iterator().next();
        final Object options = entry.getValue();
        return new Call(entry.getKey(), options instanceof String ? Map.of("topic", options) : mapping(options));
    }

    boolean has(final String key) {
        return options.get(key) != null;
    }

    String text(final String key) {
        final Object value = options.get(key);
        return value == null ? null : value.toString();
    }

    boolean flag(final String key) {
        return Boolean.TRUE.equals(options.get(key));
    }

    Integer integer(final String key) {
        final Object value = options.get(key);
        return value == null ? null : ((Number) value).intValue();
    }

    Long number(final String key) {
        final Object value = options.get(key);
        return value == null ? null : ((Number) value).longValue();
    }

    Duration duration(final String key) {
        final Object value = options.get(key);
        if (value == null) {
            return null;
        }
        if (value instanceof Number) {
            return Duration.ofMillis(((Number) value).longValue());
        }
        final String text = value.toString();
        if (text.startsWith("-")) {
            return new Call(operator, Map.of(key, text.substring(1))).duration(key).negated();
        }
        if (text.startsWith("P")) {
            return Duration.parse(text);
        }
        Duration duration = Duration.ZERO;
        final Matcher matcher = DURATION.matcher(text);
        while (matcher.find()) {
            duration = duration.plus(Long.parseLong(matcher.group(1)), UNITS.get(matcher.group(2)));
        }
        return duration;
    }

    Call part(final String key) {
        return has(key) ? new Call(operator, mapping(options.get(key))) : null;
    }

    List<String> texts(final String key) {
        final List<String> texts = new ArrayList<>();
        for (final Object item : list(key)) {
            texts.add(item.toString());
        }
        return texts;
    }

    @SuppressWarnings("unchecked")
    List<Object> list(final String key) {
        return has(key) ? (List<Object>) options.get(key) : List.of();
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> mapping(final Object value) {
        return value == null ? Map.of() : (Map<String, Object>) value;
    }

    static Map<String, String> configs(final Object value) {
        final Map<String, String> configs = new LinkedHashMap<>();
        mapping(value).forEach((key, item) -> configs.put(key, String.valueOf(item)));
        return configs;
    }

    /** The document is not one that this program can build; never an exception of Kafka Streams. */
    static final class BadRequest extends RuntimeException {
        BadRequest(final String message) {
            super(message);
        }
    }
}
