package io.headwater.streams.partitioning;

import org.apache.kafka.common.config.ConfigException;

/** A config of a static partitioner is missing or not valid. The rule is ours: without the value, it has no keys and no secrets. */
final class InvalidSettingException extends ConfigException {
    private static final long serialVersionUID = 1L;

    private final String rule;

    InvalidSettingException(final String name, final Object value, final String rule) {
        super(name, value, rule);
        this.rule = name + " " + rule;
    }

    /** Returns the name of the config and what it must be, without the value. */
    String rule() {
        return rule;
    }
}
