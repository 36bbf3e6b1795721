package io.headwater.streams;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Reads JSON of records that anyone may have written: nesting is bounded, and whatever is not JSON is an
 * {@link IllegalArgumentException}. Objects are maps, arrays are lists, numbers are doubles.
 */
final class Json {
    private static final int DEEPEST = 32;

    private final String text;
    private int position;

    private Json(final String text) {
        this.text = text;
    }

    /** Returns the value of a text; null for {@code null}. */
    static Object parse(final String text) {
        final Json json = new Json(text);
        final Object value = json.value(0);
        json.skipSpace();
        if (json.position != text.length()) {
            throw json.unexpected();
        }
        return value;
    }

    private Object value(final int depth) {
        if (depth > DEEPEST) {
            throw new IllegalArgumentException("nested too deeply");
        }
        skipSpace();
        switch (peek()) {
            case '{':
                return object(depth);
            case '[':
                return array(depth);
            case '"':
                return string();
            case 't':
                return literal("true", Boolean.TRUE);
            case 'f':
                return literal("false", Boolean.FALSE);
            case 'n':
                return literal("null", null);
            default:
                return number();
        }
    }

    private Map<String, Object> object(final int depth) {
        final Map<String, Object> found = new HashMap<>();
        position++;
        skipSpace();
        if (accept('}')) {
            return found;
        }
        do {
            skipSpace();
            final String key = string();
            skipSpace();
            require(':');
            found.put(key, value(depth + 1));
            skipSpace();
        } while (accept(','));
        require('}');
        return found;
    }

    private List<Object> array(final int depth) {
        final List<Object> found = new ArrayList<>();
        position++;
        skipSpace();
        if (accept(']')) {
            return found;
        }
        do {
            found.add(value(depth + 1));
            skipSpace();
        } while (accept(','));
        require(']');
        return found;
    }

    private String string() {
        require('"');
        final StringBuilder found = new StringBuilder();
        while (peek() != '"') {
            final char next = text.charAt(position++);
            if (next < ' ') {
                throw unexpected();
            }
            found.append(next == '\\' ? escaped() : next);
        }
        position++;
        return found.toString();
    }

    private char escaped() {
        final char kind = peek();
        position++;
        final int index = "\"\\/bfnrt".indexOf(kind);
        if (index >= 0) {
            return "\"\\/\b\f\n\r\t".charAt(index);
        } else if (kind != 'u' || position + 4 > text.length()) {
            throw unexpected();
        }
        position += 4;
        return (char) Integer.parseInt(text.substring(position - 4, position), 16);
    }

    private Double number() {
        final int start = position;
        while (position < text.length() && "+-.eE0123456789".indexOf(text.charAt(position)) >= 0) {
            position++;
        }
        if (start == position) {
            throw unexpected();
        }
        return Double.valueOf(text.substring(start, position));
    }

    private Object literal(final String word, final Object value) {
        if (!text.startsWith(word, position)) {
            throw unexpected();
        }
        position += word.length();
        return value;
    }

    private void skipSpace() {
        while (position < text.length() && " \t\r\n".indexOf(text.charAt(position)) >= 0) {
            position++;
        }
    }

    private char peek() {
        if (position >= text.length()) {
            throw unexpected();
        }
        return text.charAt(position);
    }

    private boolean accept(final char expected) {
        final boolean isNext = position < text.length() && text.charAt(position) == expected;
        position += isNext ? 1 : 0;
        return isNext;
    }

    private void require(final char expected) {
        if (!accept(expected)) {
            throw unexpected();
        }
    }

    private IllegalArgumentException unexpected() {
        return new IllegalArgumentException("not JSON at character " + position);
    }
}
