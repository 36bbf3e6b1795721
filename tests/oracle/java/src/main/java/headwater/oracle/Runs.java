package headwater.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.TimeUnit;

/**
 * Runs the topologies of documents on a real broker in one JVM, one after the other, each from an empty state.
 *
 * <p>A line of standard input that is a request, {@code {"document": {…}, "properties": {…}}}, starts a run; an empty line ends it. Standard output has a line
 * for each state, and {@code failed:} with the messages of an exception and of its causes; {@code ended} is the last line of a run. If an application does not
 * close in time, {@code not closed} is the last line, and the JVM ends: the task manager waits up to five minutes for a state updater whose client fails.
 * {@code "streamsProtocolAt"} names where an administrator without a password switches the protocol on.
 */
public final class Runs {
    private static final Duration TIMEOUT = Duration.ofSeconds(20);
    private static final long SECONDS = 60;

    private Runs() {
    }

    public static void main(final String[] arguments) throws Exception {
        final PrintStream output = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            if (!run(Call.mapping(new ObjectMapper().readValue(line, Map.class)), input, output)) {
                output.println("not closed");
                Runtime.getRuntime().halt(1);
            }
            output.println("ended");
        }
    }

    /** Runs an application until the next line of the input; returns whether it was closed in time. */
    private static boolean run(final Map<String, Object> request, final BufferedReader input, final PrintStream output) throws IOException {
        KafkaStreams application = null;
        try {
            application = application(request);
            application.setStateListener((now, before) -> output.println(now));
            application.setUncaughtExceptionHandler(error -> {
                output.println("failed: " + messages(error));
                return StreamThreadExceptionResponse.SHUTDOWN_CLIENT;
            });
            application.start();
        } catch (final Throwable error) {
            output.println("failed: " + messages(error));
        }
        input.readLine();
        return application == null || isClosed(application);
    }

    private static boolean isClosed(final KafkaStreams application) {
        try {
            if (!application.close(TIMEOUT)) {
                return false;
            }
            application.cleanUp();
            return true;
        } catch (final Throwable error) {
            error.printStackTrace();
            return false;
        }
    }

    private static KafkaStreams application(final Map<String, Object> request) throws Exception {
        final Map<String, Object> document = Call.mapping(request.get("document"));
        if (request.containsKey("streamsProtocolAt")) {
            allowStreamsProtocol(String.valueOf(request.get("streamsProtocolAt")));
        }
        final String id = String.valueOf(Call.mapping(document.get("application")).get("id"));
        final Properties properties = Oracle.properties(document, id);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, TextSerde.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, TextSerde.class);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("application").toString());
        Call.mapping(request.get("properties")).forEach((key, value) -> properties.put(key, String.valueOf(value)));
        return new KafkaStreams(Oracle.build(document, id), properties);
    }

    private static void allowStreamsProtocol(final String servers) throws Exception {
        try (Admin admin = Admin.create(Map.<String, Object>of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, servers))) {
            final FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
            admin.updateFeatures(Map.of("streams.version", update), new UpdateFeaturesOptions()).all().get(SECONDS, TimeUnit.SECONDS);
        }
    }

    private static List<String> messages(final Throwable error) {
        final List<String> messages = new ArrayList<>();
        for (Throwable cause = error; cause != null && messages.size() < 10; cause = cause.getCause()) {
            messages.add(cause.toString().replaceAll("\\s+", " "));
        }
        return messages;
    }
}
