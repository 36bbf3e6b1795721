package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.utils.Utils;
import org.apache.kafka.streams.KafkaClientSupplier;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;

import java.util.HashMap;
import java.util.Map;

/**
 * Makes a Kafka Streams application obey KIP-698 and KIP-878 by configuration alone.
 *
 * <pre>
 * default.client.supplier=io.headwater.streams.HeadwaterClientSupplier
 * internal.topics.setup=manual
 * partition.autoscaling.enabled=true
 * </pre>
 *
 * <p>Without {@code internal.topics.setup} and {@code partition.autoscaling.enabled}, nothing changes. An application
 * that has a client supplier names it in {@code headwater.delegate.client.supplier}.
 */
public final class HeadwaterClientSupplier implements KafkaClientSupplier, Configurable {
    private static final String STRATEGY = "partition.assignment.strategy";

    private KafkaClientSupplier clients;
    private SupplierConfig config;
    private LeaderContext context;

    /** Kafka Streams calls this constructor, then {@link #configure}. */
    public HeadwaterClientSupplier() {
    }

    /** Creates a supplier for the constructors of {@code KafkaStreams} that take one: these do not configure it. */
    public HeadwaterClientSupplier(final Map<String, ?> configs) {
        configure(configs);
    }

    /**
     * Reads the configs of the application.
     *
     * @throws ConfigException if a config of the library is not valid
     */
    @Override
    public void configure(final Map<String, ?> configs) {
        config = SupplierConfig.of(configs);
        clients = delegate(configs);
    }

    @Override
    public Admin getAdmin(final Map<String, Object> adminConfigs) {
        requireConfigured();
        final Admin admin = clients.getAdmin(adminConfigs);
        if (!config.isActive()) {
            return admin;
        }
        final String clientId = String.valueOf(adminConfigs.getOrDefault("client.id", "")).replaceAll("-admin$", "");
        context = new LeaderContext(
            config, admin, clientId, new OwnershipReader(config.applicationId, clients::getRestoreConsumer));
        return context.adminOfApplication();
    }

    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> producerConfigs) {
        requireConfigured();
        return clients.getProducer(producerConfigs);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> consumerConfigs) {
        requireConfigured();
        return clients.getConsumer(config.isActive() ? withAssignor(consumerConfigs) : consumerConfigs);
    }

    /** Returns the configs of a main consumer with {@link InternalTopicsAssignor}. */
    Map<String, Object> withAssignor(final Map<String, Object> consumerConfigs) {
        final Map<String, Object> changed = new HashMap<>(consumerConfigs);
        changed.put(InternalTopicsAssignor.DELEGATE, consumerConfigs.get(STRATEGY));
        changed.put(InternalTopicsAssignor.CONTEXT, context);
        changed.put(STRATEGY, InternalTopicsAssignor.class.getName());
        return changed;
    }

    /** Returns what the leaders of the instance share; null before the first admin client is created. */
    LeaderContext context() {
        return context;
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> consumerConfigs) {
        requireConfigured();
        if (context != null) {
            context.ownership.setConsumerConfigs(new HashMap<>(consumerConfigs));
        }
        return clients.getRestoreConsumer(consumerConfigs);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> consumerConfigs) {
        requireConfigured();
        return clients.getGlobalConsumer(consumerConfigs);
    }

    private KafkaClientSupplier delegate(final Map<String, ?> configs) {
        final KafkaClientSupplier created;
        try {
            if (config.delegate == null) {
                return new DefaultKafkaClientSupplier();
            } else if (config.delegate instanceof KafkaClientSupplier) {
                return (KafkaClientSupplier) config.delegate;
            } else if (config.delegate instanceof Class) {
                created = Utils.newInstance(((Class<?>) config.delegate).asSubclass(KafkaClientSupplier.class));
            } else {
                created = Utils.newInstance((String) config.delegate, KafkaClientSupplier.class);
            }
        } catch (final ClassNotFoundException | LinkageError | RuntimeException error) {
            throw new ConfigException(SupplierConfig.DELEGATE, config.delegate,
                "must be a class on the class path that implements KafkaClientSupplier and has a constructor without"
                    + " parameters (" + error + ")");
        }
        if (created instanceof Configurable) {
            ((Configurable) created).configure(configs);
        }
        return created;
    }

    private void requireConfigured() {
        if (config == null) {
            throw new ConfigException("HeadwaterClientSupplier is not configured. Name it in default.client.supplier, or"
                + " pass the configs of the application to its constructor.");
        }
    }
}
