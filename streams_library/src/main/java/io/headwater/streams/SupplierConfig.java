package io.headwater.streams;

import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.streams.KafkaClientSupplier;

import java.util.Map;

/** The configs of the library. All checks are made when the application starts; no value has a silent default. */
final class SupplierConfig {
    static final String SETUP = "internal.topics.setup";
    static final String AUTOMATIC = "automatic";
    static final String MANUAL = "manual";
    static final String AUTOSCALING = "partition.autoscaling.enabled";
    static final String AUTOSCALING_TIMEOUT = "partition.autoscaling.timeout.ms";
    static final String DELEGATE = "headwater.delegate.client.supplier";
    static final long DEFAULT_TIMEOUT_MS = 15 * 60 * 1000L;
    private static final String APPLICATION = "application.id";
    private static final String PROTOCOL = "group.protocol";

    final boolean isSetupGiven;
    final boolean isManual;
    final boolean isAutoscaling;
    final long timeoutMs;
    final Object delegate;
    /** Null only if the application has none, which Kafka Streams refuses. */
    final String applicationId;

    private SupplierConfig(
        final boolean isSetupGiven, final boolean isManual, final boolean isAutoscaling, final long timeoutMs,
        final Object delegate, final String applicationId
    ) {
        this.isSetupGiven = isSetupGiven;
        this.isManual = isManual;
        this.isAutoscaling = isAutoscaling;
        this.timeoutMs = timeoutMs;
        this.delegate = delegate;
        this.applicationId = applicationId;
    }

    /** Returns whether a config was given. Without one, the application behaves as without the library. */
    boolean isActive() {
        return isSetupGiven || isAutoscaling;
    }

    /**
     * Reads the configs of an application.
     *
     * @throws ConfigException if a value is not allowed, or has no effect with the other ones
     */
    static SupplierConfig of(final Map<String, ?> configs) {
        final String setup = text(configs, SETUP);
        if (setup != null && !setup.equals(AUTOMATIC) && !setup.equals(MANUAL)) {
            throw new ConfigException(SETUP, configs.get(SETUP), "must be automatic or manual");
        }
        final boolean autoscaling = flag(configs);
        final SupplierConfig config = new SupplierConfig(
            setup != null, MANUAL.equals(setup), autoscaling, timeout(configs), delegate(configs),
            text(configs, APPLICATION));
        final String protocol = text(configs, PROTOCOL);
        if (config.isActive() && protocol != null && !protocol.equalsIgnoreCase("classic")) {
            throw new ConfigException(PROTOCOL, configs.get(PROTOCOL),
                "with this protocol the brokers create the internal topics, and the application cannot prevent or"
                    + " expand them. Remove " + SETUP + " and " + AUTOSCALING + " and grant the application no permission"
                    + " to create topics, or set " + PROTOCOL + "=classic");
        }
        return config;
    }

    private static boolean flag(final Map<String, ?> configs) {
        final Object value = configs.get(AUTOSCALING);
        if (value == null || value instanceof Boolean) {
            return Boolean.TRUE.equals(value);
        }
        final String text = value.toString().trim().toLowerCase(java.util.Locale.ROOT);
        if (!text.equals("true") && !text.equals("false")) {
            throw new ConfigException(AUTOSCALING, value, "must be true or false");
        }
        return text.equals("true");
    }

    private static long timeout(final Map<String, ?> configs) {
        final Object value = configs.get(AUTOSCALING_TIMEOUT);
        if (value == null) {
            return DEFAULT_TIMEOUT_MS;
        }
        try {
            final long parsed = Long.parseLong(value.toString().trim());
            if (parsed >= 0) {
                return parsed;
            }
        } catch (final NumberFormatException error) {
            // refused below
        }
        throw new ConfigException(AUTOSCALING_TIMEOUT, value, "must be a whole number of milliseconds, 0 or more");
    }

    private static Object delegate(final Map<String, ?> configs) {
        final Object value = configs.get(DELEGATE);
        if (value == null || value instanceof KafkaClientSupplier) {
            return value;
        }
        if (value instanceof Class && value != HeadwaterClientSupplier.class) {
            return value;
        }
        final String name = value.toString().trim();
        if (name.isEmpty() || name.equals(HeadwaterClientSupplier.class.getName())) {
            throw new ConfigException(DELEGATE, value, "must name the client supplier of the application");
        }
        return name;
    }

    private static String text(final Map<String, ?> configs, final String key) {
        final Object value = configs.get(key);
        return value == null ? null : value.toString().trim();
    }
}
