package io.headwater.streams;

/** A config of an internal topic that loses data or differs from the code, with the value that repairs it. */
final class Misconfiguration {
    final String topic;
    final String config;
    final String found;
    final String repaired;
    final String reason;

    Misconfiguration(
        final String topic, final String config, final String found, final String repaired, final String reason
    ) {
        this.topic = topic;
        this.config = config;
        this.found = found;
        this.repaired = repaired;
        this.reason = reason;
    }

    String sentence() {
        return "Topic " + topic + ": " + config + " is " + found + ", but " + reason + ". Set " + config + "=" + repaired
            + " (kafka-configs.sh --bootstrap-server BROKER --alter --topic " + topic
            + " --add-config '" + config + "=" + bracketed() + "').";
    }

    private String bracketed() {
        return repaired.indexOf(',') < 0 ? repaired : "[" + repaired + "]";
    }
}
