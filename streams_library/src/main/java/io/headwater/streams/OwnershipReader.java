package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.consumer.Consumer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.errors.AuthorizationException;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;

/** Reads which ids the topics of an application have had when {@code pulumi up} recorded them. */
final class OwnershipReader {
    private static final Logger LOG = LoggerFactory.getLogger(OwnershipReader.class);
    private static final TopicPartition PARTITION = new TopicPartition(OwnershipRecords.TOPIC, 0);
    private static final long LONGEST_MS = 10_000;
    private static final long LARGEST_LOG = 256L * 1024 * 1024;

    private final String application;
    private final Function<Map<String, Object>, Consumer<byte[], byte[]>> newConsumer;
    private Map<String, Object> consumerConfigs;
    private boolean isReported;

    OwnershipReader(
        final String application, final Function<Map<String, Object>, Consumer<byte[], byte[]>> newConsumer
    ) {
        this.application = application;
        this.newConsumer = newConsumer;
    }

    /** Sets the configs of a consumer that restores state, which has no group. The reader uses them, too. */
    void setConsumerConfigs(final Map<String, Object> configs) {
        consumerConfigs = configs;
    }

    /** Returns topic → recorded ids; empty if none are recorded or may be read; null if another attempt is useful. */
    Map<String, Set<Uuid>> read(final Admin admin) {
        try {
            if (consumerConfigs == null || application == null || !exists(admin)) {
                return Map.of();
            }
            final Map<String, Object> configs = new HashMap<>(consumerConfigs);
            configs.put("client.id", configs.getOrDefault("client.id", application) + "-ownership");
            configs.put("allow.auto.create.topics", "false");
            configs.put("auto.offset.reset", "earliest");
            configs.remove("group.id");
            configs.remove("group.instance.id");
            try (Consumer<byte[], byte[]> consumer = newConsumer.apply(configs)) {
                return read(consumer);
            }
        } catch (final InterruptException error) {
            throw error;
        } catch (final AuthorizationException error) {
            report("grant the application Read on topic " + OwnershipRecords.TOPIC + ", or ignore this");
            return Map.of();
        } catch (final KafkaException error) {
            report(error.toString());
            return null;
        }
    }

    private Map<String, Set<Uuid>> read(final Consumer<byte[], byte[]> consumer) {
        final OwnershipRecords records = new OwnershipRecords(application);
        final long deadline = System.currentTimeMillis() + LONGEST_MS;
        final Duration longest = Duration.ofMillis(LONGEST_MS);
        consumer.assign(List.of(PARTITION));
        consumer.seekToBeginning(List.of(PARTITION));
        final long end = consumer.endOffsets(List.of(PARTITION), longest).get(PARTITION);
        final long[] size = {0};
        while (consumer.position(PARTITION, longest) < end) {
            consumer.poll(Duration.ofMillis(100)).forEach(record -> {
                size[0] += Math.max(0, record.serializedValueSize());
                records.add(record.key(), record.value());
            });
            if (size[0] > LARGEST_LOG || System.currentTimeMillis() > deadline) {
                report("the topic " + OwnershipRecords.TOPIC + " has more records than can be read in " + LONGEST_MS + " ms");
                return Map.of();
            }
        }
        return records.topicIds();
    }

    private boolean exists(final Admin admin) {
        try {
            admin.describeTopics(List.of(OwnershipRecords.TOPIC)).allTopicNames().get(LONGEST_MS, TimeUnit.MILLISECONDS);
            return true;
        } catch (final ExecutionException error) {
            if (error.getCause() instanceof UnknownTopicOrPartitionException) {
                return false;
            } else if (error.getCause() instanceof KafkaException) {
                throw (KafkaException) error.getCause();
            }
            throw new KafkaException(error.getCause());
        } catch (final TimeoutException error) {
            throw new KafkaException("no answer in " + LONGEST_MS + " ms", error);
        } catch (final InterruptedException error) {
            throw new InterruptException(error);
        }
    }

    private void report(final String reason) {
        if (!isReported) {
            isReported = true;
            LOG.warn("The ids of internal topics that pulumi up has recorded are not known. Topics that were re-created"
                + " while all instances were stopped are not found: {}.", reason);
        }
    }
}
