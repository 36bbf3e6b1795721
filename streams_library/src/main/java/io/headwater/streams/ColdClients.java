package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.producer.Producer;
import org.apache.kafka.streams.KafkaClientSupplier;

import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;

/** The clients of an application that is never started: an admin client, and consumers and producers that do nothing. */
final class ColdClients implements KafkaClientSupplier {
    private final HeadwaterClientSupplier supplier;
    private Map<String, Object> consumerConfigs;

    ColdClients(final Properties properties) {
        final Map<String, Object> configs = new HashMap<>();
        properties.forEach((name, value) -> configs.put(String.valueOf(name), value));
        configs.put(SupplierConfig.SETUP, SupplierConfig.MANUAL);
        supplier = new HeadwaterClientSupplier(configs);
    }

    LeaderContext context() {
        return supplier.context();
    }

    /** Returns the assignor of the application. */
    InternalTopicsAssignor assignor() {
        final InternalTopicsAssignor assignor = new InternalTopicsAssignor();
        assignor.configure(supplier.withAssignor(consumerConfigs));
        return assignor;
    }

    @Override
    public Admin getAdmin(final Map<String, Object> configs) {
        return supplier.getAdmin(configs);
    }

    @Override
    public Consumer<byte[], byte[]> getConsumer(final Map<String, Object> configs) {
        consumerConfigs = configs;
        return idle(Consumer.class);
    }

    @Override
    public Consumer<byte[], byte[]> getRestoreConsumer(final Map<String, Object> configs) {
        return idle(Consumer.class);
    }

    @Override
    public Consumer<byte[], byte[]> getGlobalConsumer(final Map<String, Object> configs) {
        return idle(Consumer.class);
    }

    @Override
    public Producer<byte[], byte[]> getProducer(final Map<String, Object> configs) {
        return idle(Producer.class);
    }

    void close() {
        supplier.context().adminOfApplication().close();
    }

    /** Returns a client whose methods return nothing: null, zero, or an empty collection. */
    @SuppressWarnings("unchecked")
    private static <T> T idle(final Class<?> type) {
        return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type}, (proxy, method, arguments) -> {
            final Class<?> result = method.getReturnType();
            if (method.getName().equals("hashCode")) {
                return System.identityHashCode(proxy);
            } else if (method.getName().equals("equals")) {
                return proxy == arguments[0];
            } else if (result.equals(ConsumerGroupMetadata.class)) {
                return new ConsumerGroupMetadata("initialize");
            } else if (result.equals(Map.class)) {
                return Map.of();
            } else if (result.equals(Set.class)) {
                return Set.of();
            } else if (Collection.class.isAssignableFrom(result)) {
                return List.of();
            } else if (result.equals(Optional.class)) {
                return Optional.empty();
            } else if (result.equals(long.class)) {
                return 0L;
            } else if (result.equals(int.class)) {
                return 0;
            } else if (result.equals(boolean.class)) {
                return false;
            }
            return null;
        });
    }
}
