package io.headwater.streams.topology;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Properties;

/**
 * The program that {@code headwater import --jar} runs: it calls a method of the application and writes the document.
 *
 * <p>The argument is a properties file: {@code target} ({@code com.acme.Orders::topology}), {@code document} and {@code result}
 * (files to write), and the properties of the application with the prefix {@code property.}. The result is a properties file with
 * {@code outcome}, and {@code detail} and {@code trace} of an error. Standard output belongs to the application, and so does the
 * exit code. The program ends although threads of the application run.
 */
public final class ExportProgram {
    private static final String PROPERTY = "property.";

    private ExportProgram() {
    }

    public static void main(final String[] arguments) throws IOException {
        final Properties request = new Properties();
        try (InputStream stream = Files.newInputStream(Path.of(arguments[0]))) {
            request.load(stream);
        }
        final Properties result = new Properties();
        try {
            export(request);
            result.setProperty("outcome", "written");
        } catch (final ExportException error) {
            describe(error.outcome, error.getMessage(), error.getCause(), result);
        } catch (final LinkageError error) {
            describe(outcomeOf(error), String.valueOf(error.getMessage()), error, result);
        } catch (final RuntimeException error) {
            final boolean isUnsupported = error.getClass().getSimpleName().equals("UnsupportedKafkaStreamsException");
            describe(isUnsupported ? "unsupported" : "refused", String.valueOf(error.getMessage()), error, result);
        } catch (final StackOverflowError | OutOfMemoryError error) {
            describe("threw", error.toString(), error, result);
        }
        final Path written = Path.of(request.getProperty("result"));
        final Path draft = written.resolveSibling(written.getFileName() + ".draft");
        try (OutputStream stream = Files.newOutputStream(draft)) {
            result.store(stream, null);
        }
        Files.move(draft, written);
        Runtime.getRuntime().halt(0);
    }

    /** Runs the part that needs Kafka Streams, which may not be on the class path. */
    private static void export(final Properties request) {
        final Properties properties = new Properties();
        request.stringPropertyNames().stream().filter(key -> key.startsWith(PROPERTY))
            .forEach(key -> properties.setProperty(key.substring(PROPERTY.length()), request.getProperty(key)));
        Export.write(request.getProperty("target"), properties, Path.of(request.getProperty("document")));
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

    private static void describe(final String outcome, final String detail, final Throwable cause, final Properties result) {
        result.setProperty("outcome", outcome);
        result.setProperty("detail", String.valueOf(detail));
        if (cause != null) {
            final StringWriter trace = new StringWriter();
            cause.printStackTrace(new PrintWriter(trace));
            result.setProperty("trace", trace.toString());
        }
    }
}
