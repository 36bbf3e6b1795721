package io.headwater.streams.topology;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Compares two texts of the section {@code exported}, entry by entry. */
final class SectionDifference {
    private SectionDifference() {
    }

    /** Returns one line for each entry that differs; none if only spaces at the end of lines differ. */
    static List<String> between(final List<String> document, final String code) {
        final Map<String, String> committed = entries(document);
        final Map<String, String> needed = entries(List.of(code.split("\n")));
        final List<String> found = new ArrayList<>();
        final Set<String> paths = new LinkedHashSet<>(committed.keySet());
        paths.addAll(needed.keySet());
        for (final String path : paths) {
            final String before = committed.get(path);
            final String after = needed.get(path);
            if (before == null) {
                found.add(path + ": missing in the document, the code has " + after);
            } else if (after == null) {
                found.add(path + ": not in the code, the document has " + before);
            } else if (!before.equals(after)) {
                found.add(path + ": " + before + " in the document, " + after + " in the code");
            }
        }
        if (found.isEmpty() && !List.copyOf(committed.keySet()).equals(List.copyOf(needed.keySet()))) {
            found.add("the order of entries is another one in the code");
        }
        return found;
    }

    /** Returns path → text of the entries that have a value on their line. */
    private static Map<String, String> entries(final List<String> lines) {
        final Map<String, String> entries = new LinkedHashMap<>();
        final Deque<String> path = new ArrayDeque<>();
        final Deque<Integer> indents = new ArrayDeque<>();
        for (final String line : lines) {
            final String content = line.strip();
            if (content.isEmpty() || content.startsWith("#")) {
                continue;
            }
            final int indent = line.indexOf(content);
            while (!indents.isEmpty() && indents.peek() >= indent) {
                indents.pop();
                path.removeLast();
            }
            final int separator = separator(content);
            final String key = separator < 0 ? content : content.substring(0, separator);
            final String value = separator < 0 ? "" : content.substring(separator + 1).strip();
            indents.push(indent);
            path.addLast(key);
            if (!value.isEmpty() || separator < 0) {
                entries.put(name(path), value);
            }
        }
        return entries;
    }

    /** Returns the path without what is the same for all entries. */
    private static String name(final Deque<String> path) {
        final List<String> parts = new ArrayList<>(path);
        parts.remove(Section.KEY);
        if (parts.size() > 2 && parts.get(0).equals("subtopologies")) {
            parts.set(0, "sub-topology " + parts.remove(1).replace("\"", ""));
            parts.remove("nodes");
        }
        return String.join(": ", parts);
    }

    private static int separator(final String content) {
        if (!content.startsWith("\"")) {
            return content.indexOf(':');
        }
        for (int index = 1; index < content.length(); index++) {
            if (content.charAt(index) == '\\') {
                index++;
            } else if (content.charAt(index) == '"') {
                return content.indexOf(':', index);
            }
        }
        return -1;
    }
}
