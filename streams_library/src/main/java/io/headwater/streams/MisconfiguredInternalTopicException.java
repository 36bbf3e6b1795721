package io.headwater.streams;

import org.apache.kafka.streams.errors.StreamsException;

/**
 * Internal topics have configs that lose data or differ from the code (KIP-698). Fatal.
 *
 * <p>The message says for each topic what is wrong and how to fix it.
 */
public class MisconfiguredInternalTopicException extends StreamsException {
    private static final long serialVersionUID = 1L;

    MisconfiguredInternalTopicException(final String message) {
        super(message);
    }
}
