package headwater.oracle;

/** This version of Kafka Streams does not have what a document uses: a program with it would not compile. */
final class NotAvailable extends RuntimeException {
    NotAvailable(final String what, final String since) {
        super(what + ": since " + since);
    }
}
