package io.headwater.streams;

import org.apache.kafka.common.errors.AuthorizationException;

/** What to grant if brokers deny a request about a topic or a group. */
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
            ? " Grant the application's user " + operation + " on the topic: " + command(operation, "--topic " + topic) : "";
    }

    /**
     * Returns a sentence with the command that grants Describe on a group; empty for any other error.
     *
     * <p>Members of a group have Read on it, which includes Describe, but the admin client may have another user.
     */
    static String groupHint(final Throwable error, final String group) {
        return error instanceof AuthorizationException
            ? " Grant the user of the application's admin client Describe on the group: "
                + command("Describe", "--group " + group) : "";
    }

    private static String command(final String operation, final String resource) {
        return "kafka-acls.sh --bootstrap-server BROKER --add --allow-principal User:NAME --operation " + operation + " "
            + resource;
    }
}
