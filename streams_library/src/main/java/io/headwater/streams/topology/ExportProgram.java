package io.headwater.streams.topology;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.Reader;
import java.io.StringWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Properties;

/**
 * The program that {@code headwater import --jar} runs: it calls a method of the application and writes the document.
 *
 * <p>Arguments: the target ({@code com.acme.Orders::topology}), the document to write, an empty folder for the result, a properties
 * file or an empty text, and any number of properties {@code key=value}. The result is the file {@code outcome}, and the files
 * {@code detail} and {@code trace} of an error. Standard output belongs to the application, and so does the exit code. The program
 * ends although threads of the application run.
 */
public final class ExportProgram {
    private static final int FIRST_PROPERTY = 4;

    private ExportProgram() {
    }

    public static void main(final String[] arguments) throws IOException {
        final Path result = Path.of(arguments[2]);
        try {
            // The part that needs Kafka Streams, which may not be on the class path.
            Export.write(arguments[0], properties(arguments), Path.of(arguments[1]));
            write(result, "written", "", null);
        } catch (final ExportException error) {
            write(result, error.outcome, error.getMessage(), error.getCause());
        } catch (final LinkageError error) {
            write(result, outcomeOf(error), String.valueOf(error.getMessage()), error);
        } catch (final RuntimeException error) {
            final boolean isUnsupported = error.getClass().getSimpleName().equals("UnsupportedKafkaStreamsException");
            write(result, isUnsupported ? "unsupported" : "refused", String.valueOf(error.getMessage()), error);
        } catch (final StackOverflowError | OutOfMemoryError error) {
            write(result, "threw", error.toString(), error);
        }
        Runtime.getRuntime().halt(0);
    }

    private static Properties properties(final String[] arguments) throws IOException {
        final Properties properties = new Properties();
        if (!arguments[FIRST_PROPERTY - 1].isEmpty()) {
            try (Reader reader = Files.newBufferedReader(Path.of(arguments[FIRST_PROPERTY - 1]), StandardCharsets.UTF_8)) {
                properties.load(reader);
            }
        }
        for (int index = FIRST_PROPERTY; index < arguments.length; index++) {
            final int separator = arguments[index].indexOf('=');
            properties.setProperty(arguments[index].substring(0, separator), arguments[index].substring(separator + 1));
        }
        return properties;
    }

    static String outcomeOf(final LinkageError error) {
        final String message = String.valueOf(error.getMessage()).toLowerCase(Locale.ROOT);
        if (error instanceof UnsupportedClassVersionError) {
            return "newer java";
        }
        if (error instanceof NoClassDefFoundError && message.contains("org/apache/kafka/streams")) {
            return "no kafka streams";
        }
        return "missing dependency";
    }

    /** Writes the outcome last: without this file, the program has not ended by itself. */
    private static void write(final Path folder, final String outcome, final String detail, final Throwable cause) throws IOException {
        final StringWriter trace = new StringWriter();
        if (cause != null) {
            cause.printStackTrace(new PrintWriter(trace));
        }
        Files.writeString(folder.resolve("detail"), String.valueOf(detail), StandardCharsets.UTF_8);
        Files.writeString(folder.resolve("trace"), trace.toString(), StandardCharsets.UTF_8);
        final Path draft = folder.resolve("outcome.draft");
        Files.writeString(draft, outcome, StandardCharsets.UTF_8);
        Files.move(draft, folder.resolve("outcome"));
    }
}
