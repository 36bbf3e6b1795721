package io.headwater.streams.topology;

/** Thrown if the topology of this version of Kafka Streams cannot be read. */
public final class UnsupportedKafkaStreamsException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnsupportedKafkaStreamsException(final String message, final Throwable cause) {
        super(message, cause);
    }
}
