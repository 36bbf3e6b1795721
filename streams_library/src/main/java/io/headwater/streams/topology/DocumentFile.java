package io.headwater.streams.topology;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** A topology document as lines: the section {@code exported} belongs to this library, all other lines to the user. */
final class DocumentFile {
    private static final Pattern KEY = Pattern.compile("^([A-Za-z$]+)\\s*:");
    private static final Pattern ID = Pattern.compile("^ {4}id: (\\S+)$", Pattern.MULTILINE);
    private static final String HEAD = "# Topology document of %s, written from its code by TopologyDocument of headwater-streams.\n"
        + "# Sections that you add, such as `acls` or `topics`, are kept. Do not edit the section `exported`.\n"
        + "version: 1\n"
        + "application:\n"
        + "  id: %s\n";

    private final Path path;
    private final List<String> lines;

    private DocumentFile(final Path path, final List<String> lines) {
        this.path = path;
        this.lines = lines;
    }

    static DocumentFile read(final Path path) {
        try {
            return new DocumentFile(path, List.of(Files.readString(path, StandardCharsets.UTF_8).split("\r?\n")));
        } catch (final NoSuchFileException error) {
            return new DocumentFile(path, null);
        } catch (final IOException error) {
            throw new UncheckedIOException(path + " cannot be read", error);
        }
    }

    static String newText(final Section section) {
        final String id = Yaml.scalar(section.applicationId);
        return String.format(HEAD, section.applicationId, id) + "\n" + section.text;
    }

    boolean exists() {
        return lines != null;
    }

    /** Returns the lines of the section, without its first one if it is missing. */
    List<String> section() {
        final int start = find(Section.KEY);
        return start < 0 ? List.of() : lines.subList(start, end(start));
    }

    /** Returns the text with another section; the sections of an earlier import are replaced. */
    String withSection(final Section section) {
        if (lines == null) {
            return newText(section);
        }
        checkId(section);
        final List<String> kept = new ArrayList<>(lines);
        int at = -1;
        for (final String key : List.of(Section.KEY, "describe", "observed")) {
            final DocumentFile current = new DocumentFile(path, kept);
            final int start = current.find(key);
            if (start >= 0) {
                kept.subList(start, current.end(start)).clear();
                at = at < 0 ? start : at;
            }
        }
        kept.add(at < 0 ? kept.size() : Math.min(at, kept.size()), section.text.stripTrailing());
        return String.join("\n", kept).stripTrailing() + "\n";
    }

    /** Checks that the file has one document, that it is not written in calls, and that its section is for this application. */
    void checkId(final Section section) {
        if (lines == null) {
            return;
        }
        if (lines.stream().skip(1).anyMatch(line -> line.startsWith("---")) || count(Section.KEY) > 1) {
            throw new IllegalArgumentException(path + " has several documents. Give " + section.applicationId + " a file of its own.");
        }
        if (find("topology") >= 0) {
            throw new IllegalArgumentException(path + " has the topology as calls, in `topology`. Remove this section: the code replaces it.");
        }
        final Matcher found = ID.matcher(String.join("\n", section()));
        if (found.find() && !found.group(1).equals(Yaml.scalar(section.applicationId))) {
            throw new IllegalArgumentException(
                path + " is the document of " + found.group(1) + ", but the application.id of the properties is " + section.applicationId + ".");
        }
    }

    private int find(final String key) {
        for (int index = 0; index < lines.size(); index++) {
            if (isKey(lines.get(index), key)) {
                return index;
            }
        }
        return -1;
    }

    private long count(final String key) {
        return lines.stream().filter(line -> isKey(line, key)).count();
    }

    private static boolean isKey(final String line, final String key) {
        final Matcher matcher = KEY.matcher(line);
        return matcher.find() && matcher.group(1).equals(key);
    }

    /** Returns the index after the last line of a section; comments and empty lines below it belong to the next one. */
    private int end(final int start) {
        int end = start + 1;
        for (int index = start + 1; index < lines.size(); index++) {
            final String line = lines.get(index);
            if (line.isBlank() || line.startsWith("#")) {
                continue;
            }
            if (line.charAt(0) != ' ' && line.charAt(0) != '\t') {
                break;
            }
            end = index + 1;
        }
        return end;
    }
}
