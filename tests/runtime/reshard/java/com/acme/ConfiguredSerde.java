package com.acme;

import org.apache.kafka.common.serialization.Deserializer;
import org.apache.kafka.common.serialization.Serde;
import org.apache.kafka.common.serialization.Serializer;

import java.nio.charset.Charset;
import java.util.Map;

/** A serde that creates its deserializer when it is configured. */
public final class ConfiguredSerde implements Serde<String> {
    private Deserializer<String> deserializer;

    @Override
    public void configure(final Map<String, ?> configs, final boolean isKey) {
        final Charset charset = Charset.forName(String.valueOf(configs.get("charset")));
        deserializer = (topic, data) -> new String(data, charset);
    }

    @Override
    public Serializer<String> serializer() {
        return null;
    }

    @Override
    public Deserializer<String> deserializer() {
        return deserializer;
    }
}
