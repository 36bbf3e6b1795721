package io.headwater.streams;

import org.apache.kafka.streams.errors.StreamsException;

/** {@link InternalTopics#initialize} was called for an application whose internal topics all exist (KIP-698). Fatal. */
public class InternalTopicsAlreadySetupException extends StreamsException {
    private static final long serialVersionUID = 1L;

    InternalTopicsAlreadySetupException(final String message) {
        super(message);
    }
}
