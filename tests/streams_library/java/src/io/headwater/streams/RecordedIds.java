package io.headwater.streams;

import org.apache.kafka.common.Uuid;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;

/** Prints the ids that the records of each file contain for the application "shop": key and value are in a line. */
public final class RecordedIds {
    private RecordedIds() {
    }

    public static void main(final String[] arguments) throws Exception {
        for (final String file : arguments) {
            final OwnershipRecords records = new OwnershipRecords("shop");
            for (final String line : Files.readAllLines(Path.of(file), StandardCharsets.ISO_8859_1)) {
                final String[] words = line.split("\t", 2);
                records.add(bytes(words[0]), words[1].equals("deleted") ? null : bytes(words[1]));
            }
            final Map<String, Set<String>> found = new TreeMap<>();
            for (final Map.Entry<String, Set<Uuid>> entry : records.topicIds().entrySet()) {
                final Set<String> ids = new TreeSet<>();
                entry.getValue().forEach(id -> ids.add(id.toString()));
                found.put(entry.getKey(), ids);
            }
            System.out.println(found);
        }
    }

    private static byte[] bytes(final String text) {
        return text.getBytes(StandardCharsets.ISO_8859_1);
    }
}
