package headwater.streamstest;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.CreatePartitionsOptions;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.common.Configurable;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.streams.processor.internals.DefaultKafkaClientSupplier;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.TreeSet;

/**
 * Clients as an application may have its own. Prints which end offsets an assignment reads, and fails expansions as
 * {@code test.fault} says: {@code fail}, or {@code halt} after the repartition topics.
 */
public final class ObservedClients extends DefaultKafkaClientSupplier implements Configurable {
    private String application;
    private String fault;

    @Override
    public void configure(final Map<String, ?> configs) {
        application = String.valueOf(configs.get("test.name"));
        fault = String.valueOf(configs.get("test.fault"));
    }

    @Override
    public Admin getAdmin(final Map<String, Object> configs) {
        final Admin admin = super.getAdmin(configs);
        return (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), new Class<?>[] {Admin.class},
            (proxy, method, arguments) -> {
                if (method.getName().equals("listOffsets") && Thread.currentThread().getName().endsWith("StreamThread-1")) {
                    offsetsRead((Map<?, ?>) arguments[0]);
                }
                if (method.getName().equals("createPartitions")) {
                    expand(admin, (Map<?, ?>) arguments[0]);
                }
                try {
                    return method.invoke(admin, arguments);
                } catch (final InvocationTargetException error) {
                    throw error.getCause();
                }
            });
    }

    private void offsetsRead(final Map<?, ?> partitions) {
        final TreeSet<String> read = new TreeSet<>();
        partitions.keySet().forEach(partition -> read.add(((TopicPartition) partition).toString()));
        Applications.print("offsets\t" + application + "\t" + String.join(",", read));
    }

    private void expand(final Admin admin, final Map<?, ?> requested) throws Exception {
        Applications.print("expanding\t" + application + "\t" + requested.size());
        if (fault.equals("fail")) {
            throw new TimeoutException("injected");
        }
        if (fault.equals("halt")) {
            for (final Map.Entry<?, ?> entry : requested.entrySet()) {
                if (entry.getKey().toString().endsWith("-repartition")) {
                    admin.createPartitions(Map.of(entry.getKey().toString(), (NewPartitions) entry.getValue()),
                        new CreatePartitionsOptions()).all().get();
                }
            }
            Runtime.getRuntime().halt(9);
        }
    }
}
