package headwater.oracle;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericDatumReader;
import org.apache.avro.generic.GenericDatumWriter;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.io.BinaryEncoder;
import org.apache.avro.io.DecoderFactory;
import org.apache.avro.io.EncoderFactory;
import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.common.serialization.Serializer;
import org.apache.kafka.common.utils.Bytes;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.EnumSet;
import java.util.Map;
import java.util.Set;
import java.util.zip.CRC32;

/**
 * The format of values in a data run: that of the document's `default.value.serde`, a name such as `long` or `avro:FILE`; text if it has none. Functions make values of
 * this format from texts, and texts from values.
 */
public enum ValueFormat {
    TEXT, STRING, BYTES, LONG, INTEGER, SHORT, DOUBLE, FLOAT, UUID, JSON, AVRO;

    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Set<ValueFormat> OF_HASHES = EnumSet.of(LONG, INTEGER, SHORT, DOUBLE, FLOAT, UUID);
    private static final Schema SCHEMA = SchemaBuilder.record("Value").fields().requiredDouble("n").requiredString("v").endRecord();
    private static ValueFormat current = TEXT;

    static void use(final Map<String, Object> document) {
        final Object name = Call.mapping(Call.mapping(document.get("application")).get("config")).get("default.value.serde");
        current = name == null ? TEXT : valueOf(name.toString().split(":")[0].toUpperCase());
    }

    /** Whether values are made of hash values of texts, so that they have no colon. */
    static boolean hasHashes() {
        return OF_HASHES.contains(current);
    }

    static String text(final Object value) {
        if (value instanceof JsonNode) {
            return ((JsonNode) value).get("v").asText();
        }
        if (value instanceof GenericRecord) {
            return ((GenericRecord) value).get("v").toString();
        }
        return value instanceof Bytes ? new String(((Bytes) value).get(), StandardCharsets.UTF_8) : String.valueOf(value);
    }

    static Object made(final String text) {
        switch (current) {
            case BYTES: return Bytes.wrap(text.getBytes(StandardCharsets.UTF_8));
            case LONG: return hash(text) % 1000;
            case INTEGER: return (int) (hash(text) % 2_000_000_000) - 1_000_000_000;
            case SHORT: return (short) (hash(text) % 60_000 - 30_000);
            case DOUBLE: return (double) (hash(text) % 1_000_000) * 31.25;
            case FLOAT: return (float) (hash(text) % 1000) * 0.25f;
            case UUID: return java.util.UUID.fromString(String.format("00000000-0000-4000-8000-%012x", hash(text)));
            case AVRO:
                final GenericRecord made = new GenericData.Record(SCHEMA);
                made.put("n", (double) (hash(text) % 1000) * 31.25);
                made.put("v", text);
                return made;
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
                case INTEGER: return (Serde) Serdes.Integer();
                case SHORT: return (Serde) Serdes.Short();
                case DOUBLE: return (Serde) Serdes.Double();
                case FLOAT: return (Serde) Serdes.Float();
                case UUID: return (Serde) Serdes.UUID();
                case AVRO: return (Serde) Serdes.serdeFrom((topic, value) -> avro((GenericRecord) value), (topic, data) -> record(data));
                case JSON: return (Serde) Serdes.serdeFrom((topic, value) -> written((JsonNode) value), (topic, data) -> read(data));
                default: return new TextSerde();
            }
        }

        private static byte[] avro(final GenericRecord value) {
            if (value == null) {
                return null;
            }
            try {
                final ByteArrayOutputStream out = new ByteArrayOutputStream();
                final BinaryEncoder encoder = EncoderFactory.get().binaryEncoder(out, null);
                new GenericDatumWriter<GenericRecord>(SCHEMA).write(value, encoder);
                encoder.flush();
                return out.toByteArray();
            } catch (final IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        private static GenericRecord record(final byte[] data) {
            try {
                return data == null ? null : new GenericDatumReader<GenericRecord>(SCHEMA).read(null, DecoderFactory.get().binaryDecoder(data, null));
            } catch (final IOException error) {
                throw new UncheckedIOException(error);
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
