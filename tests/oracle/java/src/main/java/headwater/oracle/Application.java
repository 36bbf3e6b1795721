package headwater.oracle;

import com.fasterxml.jackson.databind.ObjectMapper;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.FeatureUpdate;
import org.apache.kafka.clients.admin.UpdateFeaturesOptions;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsConfig;

import java.io.BufferedReader;
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
 * Runs the topologies of documents on a real broker until standard input ends.
 *
 * <p>The first line of standard input is {@code {"bootstrapServers": …, "documents": [{…}]}}. Each state of an application is a line of
 * standard output: its id and the state.
 */
public final class Application {
    private Application() {
    }

    public static void main(final String[] arguments) throws Exception {
        final PrintStream states = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        final Map<String, Object> request = Call.mapping(new ObjectMapper().readValue(input.readLine(), Map.class));
        final List<KafkaStreams> applications = new ArrayList<>();
        for (final Object document : (List<?>) request.get("documents")) {
            applications.add(started(Call.mapping(document), String.valueOf(request.get("bootstrapServers")), states));
        }
        while (input.readLine() != null) {
            continue;
        }
        applications.parallelStream().forEach(application -> {
            if (application.close(Duration.ofSeconds(20))) {
                application.cleanUp();
            }
        });
        Runtime.getRuntime().halt(0); // close() without a timeout may wait for minutes
    }

    private static KafkaStreams started(final Map<String, Object> document, final String servers, final PrintStream states)
        throws Exception {
        final String id = String.valueOf(Call.mapping(document.get("application")).get("id"));
        final Properties properties = Oracle.properties(document, id);
        properties.put(StreamsConfig.BOOTSTRAP_SERVERS_CONFIG, servers);
        properties.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Texts.class);
        properties.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Texts.class);
        properties.put(StreamsConfig.STATE_DIR_CONFIG, Files.createTempDirectory("application").toString());
        properties.put(StreamsConfig.COMMIT_INTERVAL_MS_CONFIG, 100);
        if ("streams".equals(properties.get("group.protocol"))) {
            allowStreamsProtocol(properties);
        }
        final KafkaStreams application = new KafkaStreams(Oracle.build(document, id), properties);
        application.setStateListener((now, before) -> states.println(id + " " + now));
        application.start();
        return application;
    }

    /** Serializes any value as text and deserializes text, for all results of the functions. */
    public static final class Texts implements Serde<Object> {
        @Override
        public Serializer<Object> serializer() {
            return (topic, value) -> value == null ? null : String.valueOf(value).getBytes(StandardCharsets.UTF_8);
        }

        @Override
        public Deserializer<Object> deserializer() {
            return (topic, data) -> data == null ? null : new String(data, StandardCharsets.UTF_8);
        }
    }

    /** The broker of 4.1, where the protocol is early access, needs {@code unstable.*.versions.enable} for it. */
    private static void allowStreamsProtocol(final Properties properties) throws Exception {
        try (Admin admin = Admin.create(properties)) {
            final FeatureUpdate update = new FeatureUpdate((short) 1, FeatureUpdate.UpgradeType.UPGRADE);
            admin.updateFeatures(Map.of("streams.version", update), new UpdateFeaturesOptions()).all().get(60, TimeUnit.SECONDS);
        }
    }
}
