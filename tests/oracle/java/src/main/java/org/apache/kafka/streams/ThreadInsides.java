package org.apache.kafka.streams;

import org.apache.kafka.streams.processor.internals.StreamThread;
import org.apache.kafka.streams.state.internals.ThreadCache;

import java.lang.reflect.Field;
import java.util.List;
import java.util.concurrent.atomic.AtomicLong;

/** Reads the stream threads of a client, and the size of their record caches, which have no public methods. */
public final class ThreadInsides {
    private ThreadInsides() {
    }

    /** The threads that the client has not removed from its list, in the order of the list. */
    public static List<StreamThread> threads(final KafkaStreams client) {
        synchronized (client.threads) {
            return List.copyOf(client.threads);
        }
    }

    /** The bound of the thread's cache, in bytes. */
    public static long cacheBytes(final StreamThread thread) {
        final Object tasks = field(StreamThread.class, thread, "taskManager");
        final Object creator = field(tasks.getClass(), tasks, "activeTaskCreator");
        return (Long) field(ThreadCache.class, field(creator.getClass(), creator, "cache"), "maxCacheSizeBytes");
    }

    /** Whether the thread has still to change the bound of its cache. */
    public static boolean isResizing(final StreamThread thread) {
        return ((AtomicLong) field(StreamThread.class, thread, "cacheResizeSize")).get() != -1;
    }

    private static Object field(final Class<?> type, final Object object, final String name) {
        try {
            final Field field = type.getDeclaredField(name);
            field.setAccessible(true);
            return field.get(object);
        } catch (final ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
