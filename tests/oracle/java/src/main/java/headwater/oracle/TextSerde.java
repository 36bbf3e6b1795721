package headwater.oracle;

import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

import java.nio.charset.StandardCharsets;

/** The default serde of data runs: serializes any value as text and deserializes text. */
public final class TextSerde implements Serde<Object> {
    @Override
    public Serializer<Object> serializer() {
        return (topic, value) -> value == null ? null : String.valueOf(value).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public Deserializer<Object> deserializer() {
        return (topic, data) -> data == null ? null : new String(data, StandardCharsets.UTF_8);
    }
}
