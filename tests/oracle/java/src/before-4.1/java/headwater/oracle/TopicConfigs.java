package headwater.oracle;

import java.util.List;

/** Kafka's table of topic configs, which no test reads from brokers before 4.1. */
final class TopicConfigs {
    private TopicConfigs() {
    }

    static List<Object> table() {
        throw new NotAvailable("the table of topic configs", "4.1");
    }

    static List<Object> refusals(final List<Object> all) {
        throw new NotAvailable("the table of topic configs", "4.1");
    }
}
