package io.headwater.streams.partitioning;

/** Says why a partitioner or a serde cannot be used. Its text is ours: it has no keys and no configs. */
final class UnusablePartitionerException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    UnusablePartitionerException(final String message) {
        super(message);
    }
}
