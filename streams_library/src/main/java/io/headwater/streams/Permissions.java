package io.headwater.streams;

import org.apache.kafka.common.errors.AuthorizationException;

/** What to grant if brokers deny a request about a topic. */
final class Permissions {
    private Permissions() {
    }

    /**
     * Returns a sentence with the command that grants an operation on a topic; empty for any other error.
     *
     * @param operation the operation as {@code kafka-acls.sh} names it
     */
    static String hint(final Throwable error, final String operation, final String topic) {
        return error instanceof AuthorizationException
            ? " Grant the application's user " + operation + " on the topic: kafka-acls.sh --bootstrap-server BROKER --add"
                + " --allow-principal User:NAME --operation " + operation + " --topic " + topic
            : "";
    }
}
