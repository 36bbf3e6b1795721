package io.headwater.streams;

import org.apache.kafka.streams.errors.StreamsException;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.List;

/**
 * Internal topics of the application do not exist, or were deleted and re-created (KIP-698). Fatal.
 *
 * <p>Thrown in a rebalance if {@code internal.topics.setup} is {@code manual}, and by {@link InternalTopics#initialize}.
 */
public class MissingInternalTopicsException extends StreamsException {
    private static final long serialVersionUID = 1L;

    private final List<String> topics;

    MissingInternalTopicsException(final String message, final Collection<String> topics) {
        super(message);
        this.topics = Collections.unmodifiableList(new ArrayList<>(topics));
    }

    /** Returns all topics that are missing, repartition and changelog topics, in the order of their names. */
    public List<String> topics() {
        return topics;
    }
}
