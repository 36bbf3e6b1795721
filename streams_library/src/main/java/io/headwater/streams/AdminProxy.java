package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.common.TopicCollection;

import java.lang.reflect.InvocationHandler;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;
import java.util.Collection;
import java.util.function.Supplier;

/**
 * The {@link Admin} of an application: the requests of a thread are answered by the pass that it has begun, all other
 * ones by the cluster. The interface differs between versions of Kafka, so it is a dynamic proxy.
 */
final class AdminProxy implements InvocationHandler {
    private final Admin admin;
    private final Runnable onClose;
    private final ThreadLocal<AdminPass> pass = new ThreadLocal<>();

    /** {@code onClose} is run before the client is closed. */
    AdminProxy(final Admin admin, final Runnable onClose) {
        this.admin = admin;
        this.onClose = onClose;
    }

    Admin asAdmin() {
        return (Admin) Proxy.newProxyInstance(Admin.class.getClassLoader(), new Class<?>[] {Admin.class}, this);
    }

    /** Runs an action whose requests the pass answers, on this thread. */
    <T> T during(final AdminPass chosen, final Supplier<T> action) {
        pass.set(chosen);
        try {
            return action.get();
        } finally {
            pass.remove();
        }
    }

    @Override
    public Object invoke(final Object proxy, final Method method, final Object[] arguments) throws Throwable {
        final AdminPass current = pass.get();
        if (current != null && !method.getDeclaringClass().equals(Object.class)) {
            if (method.getName().equals("describeTopics")) {
                return current.describeTopics(admin, names(arguments[0]));
            }
            if (method.getName().equals("createTopics")) {
                return current.createTopics(admin, newTopics(arguments[0]));
            }
            current.otherRequest();
        }
        if (method.getName().equals("close")) {
            onClose.run();
        }
        try {
            return method.invoke(admin, arguments);
        } catch (final InvocationTargetException error) {
            throw error.getCause();
        }
    }

    @SuppressWarnings("unchecked")
    private static Collection<String> names(final Object topics) {
        return topics instanceof TopicCollection.TopicNameCollection
            ? ((TopicCollection.TopicNameCollection) topics).topicNames() : (Collection<String>) topics;
    }

    @SuppressWarnings("unchecked")
    private static Collection<NewTopic> newTopics(final Object topics) {
        return (Collection<NewTopic>) topics;
    }
}
