package org.apache.kafka.streams;

import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.MockProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.streams.processor.internals.InternalProcessorContext;
import org.apache.kafka.streams.processor.internals.StreamTask;
import org.apache.kafka.streams.state.internals.ThreadCache;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/** Lets a test driver process several records before it commits, as a real stream thread does. */
public final class DriverInsides {
    private final TopologyTestDriver driver;
    private final StreamTask task;

    public DriverInsides(final TopologyTestDriver driver) {
        this.driver = driver;
        this.task = (StreamTask) field(TopologyTestDriver.class, driver, "task");
    }

    /** Give a record to the task, which does not process it yet. */
    public void enqueue(final String topic, final long timestamp, final byte[] key, final byte[] value, final Headers headers) {
        final TopicPartition partition = (TopicPartition) call(
            TopologyTestDriver.class, driver, "getInputTopicOrPatternPartition", new Class<?>[] {String.class}, topic);
        call(TopologyTestDriver.class, driver, "enqueueTaskRecord",
            new Class<?>[] {String.class, TopicPartition.class, long.class, byte[].class, byte[].class, Headers.class},
            topic, partition, timestamp, key, value, headers);
    }

    /** Skip an offset of a topic after each third record, as the marker of a transaction does. */
    public void skipOffset(final String topic) {
        Object partition = ((Map<?, ?>) field(TopologyTestDriver.class, driver, "globalPartitionsByInputTopic")).get(topic);
        if (partition == null) {
            partition = call(TopologyTestDriver.class, driver, "getInputTopicOrPatternPartition", new Class<?>[] {String.class}, topic);
        }
        final AtomicLong next = (AtomicLong) ((Map<?, ?>) field(TopologyTestDriver.class, driver, "offsetsByTopicOrPatternPartition")).get(partition);
        if (next.get() % 4 == 3) {
            next.incrementAndGet();
        }
    }

    /** Process the records, those of internal topics included, and commit once. */
    public void process() {
        callIfPresent("resumePollingForPartitionsWithAvailableSpace");
        callIfPresent("updateLags");
        while (task.hasRecordsQueued() && task.isProcessable(0)) {
            task.process(0);
            task.maybePunctuateStreamTime();
            call(TopologyTestDriver.class, driver, "captureOutputsAndReEnqueueInternalResults", new Class<?>[] {});
        }
        final Map<TopicPartition, OffsetAndMetadata> offsets = Commits.prepare(task);
        call(TopologyTestDriver.class, driver, "commit", new Class<?>[] {Map.class}, offsets);
        task.postCommit(true);
        call(TopologyTestDriver.class, driver, "captureOutputsAndReEnqueueInternalResults", new Class<?>[] {});
    }

    /** Process the records of one sub-topology, and commit until the caches have no update. Records of internal topics are returned, not read. */
    public List<ProducerRecord<byte[], byte[]>> processAlone() {
        task.resumePollingForPartitionsWithAvailableSpace();
        task.updateLags();
        while (task.hasRecordsQueued() && task.isProcessable(0)) {
            task.process(0);
            task.maybePunctuateStreamTime();
        }
        return committed();
    }

    /** Advance the clock, punctuate, and commit. */
    public List<ProducerRecord<byte[], byte[]>> advance(final long milliseconds) {
        ((Time) field(TopologyTestDriver.class, driver, "mockWallClockTime")).sleep(milliseconds);
        task.maybePunctuateSystemTime();
        return committed();
    }

    /** Whether the topic is read by the global task, which then has read the record. */
    public boolean processGlobal(final String topic, final long timestamp, final byte[] key, final byte[] value, final Headers headers) {
        final Object partition = ((Map<?, ?>) field(TopologyTestDriver.class, driver, "globalPartitionsByInputTopic")).get(topic);
        if (partition == null) {
            return false;
        }
        call(TopologyTestDriver.class, driver, "processGlobalRecord",
            new Class<?>[] {TopicPartition.class, long.class, byte[].class, byte[].class, Headers.class}, partition, timestamp, key, value, headers);
        return true;
    }

    private List<ProducerRecord<byte[], byte[]>> committed() {
        do {
            final Map<TopicPartition, OffsetAndMetadata> offsets = Commits.prepare(task);
            call(TopologyTestDriver.class, driver, "commit", new Class<?>[] {Map.class}, offsets);
            task.postCommit(true);
        } while (hasUpdates());
        clearCaches();
        @SuppressWarnings("unchecked")
        final MockProducer<byte[], byte[]> producer = (MockProducer<byte[], byte[]>) field(TopologyTestDriver.class, driver, "producer");
        final List<ProducerRecord<byte[], byte[]>> written = List.copyOf(producer.history());
        producer.clear();
        return written;
    }

    /** Whether an update has reached a cache after it was flushed. */
    private boolean hasUpdates() {
        for (final Object cache : caches().values()) {
            if (!((Collection<?>) field(cache.getClass(), cache, "dirtyKeys")).isEmpty()) {
                return true;
            }
        }
        return false;
    }

    private Map<?, ?> caches() {
        final InternalProcessorContext<?, ?> context = (InternalProcessorContext<?, ?>) field(StreamTask.class, task, "processorContext");
        return (Map<?, ?>) field(ThreadCache.class, context.cache(), "caches");
    }

    /** Remove the entries that the caches keep after a commit. */
    public void clearCaches() {
        final InternalProcessorContext<?, ?> context = (InternalProcessorContext<?, ?>) field(StreamTask.class, task, "processorContext");
        final ThreadCache cache = context.cache();
        for (final Object name : List.copyOf(((Map<?, ?>) field(ThreadCache.class, cache, "caches")).keySet())) {
            call(ThreadCache.class, cache, "clear", new Class<?>[] {String.class}, name);
        }
        ((AtomicLong) field(ThreadCache.class, cache, "sizeInBytes")).set(0);
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

    /** Call a method of the task that exists since 3.7. */
    private void callIfPresent(final String name) {
        for (final Method method : StreamTask.class.getDeclaredMethods()) {
            if (method.getName().equals(name)) {
                call(StreamTask.class, task, name, new Class<?>[] {});
            }
        }
    }

    private static Object call(final Class<?> type, final Object object, final String name, final Class<?>[] parameters, final Object... arguments) {
        try {
            final Method method = type.getDeclaredMethod(name, parameters);
            method.setAccessible(true);
            return method.invoke(object, arguments);
        } catch (final ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
