package headwater.oracle;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.zip.CRC32;

/**
 * The format of values in a data run: that of the document's `default.value.serde`, a name such as `long`; text if it has none. Functions make values of
 * this format from texts, and texts from values.
 */
public enum ValueFormat {
    TEXT, STRING, BYTES, LONG, DOUBLE, JSON;

    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static ValueFormat current = TEXT;

    static void use(final Map<String, Object> document) {
        final Object name = Call.mapping(Call.mapping(document.get("application")).get("config")).get("default.value.serde");
        current = name == null ? TEXT : valueOf(name.toString().toUpperCase());
    }

    static boolean isNumber() {
        return current == LONG || current == DOUBLE;
    }

    static String text(final Object value) {
        if (value instanceof JsonNode) {
            return ((JsonNode) value).get("v").asText();
        }
        return value instanceof Bytes ? new String(((Bytes) value).get(), StandardCharsets.UTF_8) : String.valueOf(value);
    }

    static Object made(final String text) {
        switch (current) {
            case BYTES: return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
            case LONG: return hash(text) % 1000;
            case DOUBLE: return (double) (hash(text) % 1_000_000) * 31.25;
            case JSON: return MAPPER.createObjectNode().put("n", (double) (hash(text) % 1000) * 31.25).put("v", text);
            default: return text;
        }
    }

    static long hash(final String text) {
        final CRC32 sum = new CRC32();
        sum.update(text.getBytes(StandardCharsets.UTF_8));
        return sum.getValue();
    }

    /** The default serde of values in data runs. */
    public static final class OfValues implements Serde<Object> {
        @Override
        public Serializer<Object> serializer() {
            return serde().serializer();
        }

        @Override
        public Deserializer<Object> deserializer() {
            return serde().deserializer();
        }

        @SuppressWarnings({"rawtypes", "unchecked"})
        private static Serde<Object> serde() {
            switch (current) {
                case STRING: return (Serde) Serdes.String();
                case BYTES: return (Serde) Serdes.Bytes();
                case LONG: return (Serde) Serdes.Long();
                case DOUBLE: return (Serde) Serdes.Double();
                case JSON: return (Serde) Serdes.serdeFrom((topic, value) -> written((JsonNode) value), (topic, data) -> read(data));
                default: return new TextSerde();
            }
        }

        private static byte[] written(final JsonNode value) {
            try {
                return value == null ? null : MAPPER.writeValueAsBytes(value);
            } catch (final JsonProcessingException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static JsonNode read(final byte[] data) {
            try {
                return data == null ? null : MAPPER.readTree(data);
            } catch (final IOException error) {
                throw new UncheckedIOException(error);
            }
        }
    }
}
