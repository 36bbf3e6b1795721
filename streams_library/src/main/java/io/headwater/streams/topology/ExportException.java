package io.headwater.streams.topology;

/** Why the topology of an application could not be built: {@code outcome} is a word of {@link ExportProgram}'s result. */
final class ExportException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    final String outcome;

    ExportException(final String outcome, final String message, final Throwable cause) {
        super(message, cause);
        this.outcome = outcome;
    }
}
