package io.headwater.streams.topology;

import org.apache.kafka.streams.Topology;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * The topology document of an application, written from its code.
 *
 * <p>One line in a test of the application keeps the document equal to the code:
 *
 * <pre>{@code TopologyDocument.verify(topology, properties, Path.of("topologies/orders.yaml"));}</pre>
 *
 * <p>The topology is the result of {@code builder.build(properties)}, or of the Processor API. It is not changed, and no broker is
 * necessary. Use the properties of production: the document contains the configs that decide internal topics.
 */
public final class TopologyDocument {
    /** The system property and the environment variable with which {@link #verify} writes the document. */
    public static final String WRITE_PROPERTY = "headwater.write";
    public static final String WRITE_VARIABLE = "HEADWATER_WRITE";

    private TopologyDocument() {
    }

    /**
     * Writes the document, or the section {@code exported} of a document that exists. Other sections and comments are kept.
     *
     * @throws IllegalArgumentException if the file is not the document of this application, or the properties have no
     *     {@code application.id}
     * @throws UnsupportedKafkaStreamsException if this version of Kafka Streams cannot be read
     * @throws UncheckedIOException if the file cannot be read or written
     */
    public static void write(final Topology topology, final Map<?, ?> properties, final Path path) {
        final Section section = Section.of(topology, properties);
        final DocumentFile file = DocumentFile.read(path);
        writeText(path, file.withSection(section));
    }

    /**
     * Checks that the document is what the code needs. With the system property {@code headwater.write=true} or the environment
     * variable {@code HEADWATER_WRITE=true} it writes the document instead.
     *
     * @throws AssertionError with each difference, if the document is another one or does not exist
     */
    public static void verify(final Topology topology, final Map<?, ?> properties, final Path path) {
        if (Boolean.getBoolean(WRITE_PROPERTY) || Boolean.parseBoolean(System.getenv(WRITE_VARIABLE))) {
            write(topology, properties, path);
            return;
        }
        final Section section = Section.of(topology, properties);
        final DocumentFile file = DocumentFile.read(path);
        if (!file.exists()) {
            throw new AssertionError("There is no topology document " + path + "." + howToWrite(path));
        }
        file.checkId(section);
        if (file.section().isEmpty()) {
            throw new AssertionError("The topology document " + path + " has no section `exported`." + howToWrite(path));
        }
        final List<String> differences = SectionDifference.between(file.section(), section.text);
        if (!differences.isEmpty()) {
            throw new AssertionError("The topology document " + path + " is not what the code needs:\n  "
                + String.join("\n  ", differences) + howToWrite(path));
        }
    }

    /** Returns the text of a new document. */
    public static String text(final Topology topology, final Map<?, ?> properties) {
        return DocumentFile.newText(Section.of(topology, properties));
    }

    private static String howToWrite(final Path path) {
        return "\nTo write it, run the test with the environment variable " + WRITE_VARIABLE + "=true or with -D" + WRITE_PROPERTY
            + "=true.\nThen run `headwater plan " + path + "`: it shows what changes on the cluster.";
    }

    private static void writeText(final Path path, final String text) {
        try {
            final Path folder = path.toAbsolutePath().getParent();
            if (folder != null) {
                Files.createDirectories(folder);
            }
            Files.writeString(path, text, StandardCharsets.UTF_8);
        } catch (final IOException error) {
            throw new UncheckedIOException(path + " cannot be written", error);
        }
    }
}
