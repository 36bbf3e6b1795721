package io.headwater.streams.topology;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Collectors;

/** Writes mappings, lists and scalars as YAML. */
final class Yaml {
    private static final Pattern PLAIN = Pattern.compile("[A-Za-z_][A-Za-z0-9_./$-]*|[1-9][0-9]*[dhms]");
    private static final Set<String> WORDS = Set.of("true", "false", "null", "yes", "no", "on", "off", "y", "n");
    private static final int STEP = 2;

    private Yaml() {
    }

    /** Appends a mapping with a line for each entry; deeper than {@code blockDepth} mappings are on one line. */
    static void block(final StringBuilder text, final Map<String, Object> mapping, final int indent, final int blockDepth) {
        mapping.forEach((key, value) -> {
            text.append(" ".repeat(indent)).append(scalar(key)).append(':');
            if (value instanceof Map && !((Map<?, ?>) value).isEmpty() && blockDepth > 0) {
                text.append('\n');
                block(text, entries(value), indent + STEP, blockDepth - 1);
            } else {
                text.append(' ').append(flow(value)).append('\n');
            }
        });
    }

    /** Returns a value on one line. */
    static String flow(final Object value) {
        if (value instanceof Map) {
            return entries(value).entrySet().stream()
                .map(entry -> scalar(entry.getKey()) + ": " + flow(entry.getValue()))
                .collect(Collectors.joining(", ", "{", "}"));
        }
        if (value instanceof List) {
            return ((List<?>) value).stream().map(Yaml::flow).collect(Collectors.joining(", ", "[", "]"));
        }
        if (value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        return scalar(String.valueOf(value));
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> entries(final Object mapping) {
        return (Map<String, Object>) mapping;
    }

    /** Returns a text as a scalar that YAML reads as text: plain, or in double quotes. */
    static String scalar(final String text) {
        if (PLAIN.matcher(text).matches() && !WORDS.contains(text.toLowerCase(Locale.ROOT))) {
            return text;
        }
        final StringBuilder quoted = new StringBuilder("\"");
        for (int index = 0; index < text.length(); index++) {
            final char character = text.charAt(index);
            if (character == '"' || character == '\\') {
                quoted.append('\\').append(character);
            } else if (character < ' ' || character > '~' && !Character.isSurrogate(character)) {
                quoted.append(String.format("\\u%04x", (int) character));
            } else {
                quoted.append(character);
            }
        }
        return quoted.append('"').toString();
    }
}
