package io.headwater.streams;

import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InterruptException;
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.errors.TimeoutException;
import org.apache.kafka.streams.errors.StreamsException;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.zip.DataFormatException;
import java.util.zip.Inflater;

/**
 * The journal of {@code headwater reshard}: it is committed with offsets of the changelog topics until all entries have
 * moved. No other client commits offsets of these topics.
 *
 * <p>Before that, the application must not start: keys that have not moved would be without their state.
 */
final class ReshardJournal {
    private static final String RESHARD = "headwater.reshard.";
    private static final String BEFORE = "headwater.move.from";
    private static final List<String> AFTER = List.of("headwater.move.copy", "headwater.move.clear");
    private static final byte PLAIN = 2;
    private static final byte DEFLATED = 3;
    private static final int LONGEST_TEXT = 256 * 1024;
    private static final int LARGEST_BODY = 4 * 1024 * 1024;
    private static final long BACKOFF_MS = 200;

    private ReshardJournal() {
    }

    /**
     * Returns whether a reshard of the application has begun and is not complete.
     *
     * @throws TimeoutException if the brokers do not answer in time
     * @throws StreamsException if the offsets may not be read
     */
    static boolean exists(
        final Admin admin, final String application, final Collection<String> changelogs, final long timeoutMs
    ) {
        if (changelogs.isEmpty()) {
            return false;
        }
        final List<TopicPartition> partitions =
            changelogs.stream().map(topic -> new TopicPartition(topic, 0)).collect(Collectors.toList());
        final long started = System.currentTimeMillis();
        while (true) {
            final long waited = System.currentTimeMillis() - started;
            try {
                return read(admin, application, partitions, Math.max(1, timeoutMs - waited)).stream()
                    .anyMatch(offset -> offset != null && isOfReshard(offset));
            } catch (final ExecutionException error) {
                if (!(error.getCause() instanceof RetriableException)) {
                    throw new StreamsException(failure(application) + "."
                        + Permissions.groupHint(error.getCause(), application), error.getCause());
                }
                if (System.currentTimeMillis() - started >= timeoutMs) {
                    throw new TimeoutException(failure(application) + " within " + timeoutMs + " ms. This can happen if the"
                        + " Kafka cluster is temporarily not available.", error.getCause());
                }
            } catch (final InterruptedException error) {
                throw new InterruptException(error);
            }
            ClusterTopics.sleep(BACKOFF_MS);
        }
    }

    private static Collection<OffsetAndMetadata> read(
        final Admin admin, final String application, final List<TopicPartition> partitions, final long timeoutMs
    ) throws ExecutionException, InterruptedException {
        return admin.listConsumerGroupOffsets(
                Map.of(application, new ListConsumerGroupOffsetsSpec().topicPartitions(partitions)),
                new ListConsumerGroupOffsetsOptions().timeoutMs((int) timeoutMs))
            .partitionsToOffsetAndMetadata(application).get().values();
    }

    private static String failure(final String application) {
        return "The offsets of group " + application + ", which show whether a headwater reshard is complete, could not be"
            + " read";
    }

    private static boolean isOfReshard(final OffsetAndMetadata offset) {
        final Map<String, Long> entries = entries(offset.metadata());
        // A copy of state keeps the counts.
        return entries.keySet().stream().anyMatch(name -> name.startsWith(RESHARD))
            && AFTER.stream().map(entries::get).anyMatch(after -> after != null && !after.equals(entries.get(BEFORE)));
    }

    /** Returns the entries of a committed text; empty if another program has committed it. */
    static Map<String, Long> entries(final String text) {
        if (text == null || text.length() > LONGEST_TEXT) {
            return Map.of();
        }
        try {
            final ByteBuffer raw = ByteBuffer.wrap(Base64.getDecoder().decode(withoutEnd(text)));
            final byte format = raw.get();
            raw.getLong(); // the largest timestamp of the partition
            final ByteBuffer body = format == DEFLATED ? inflate(raw) : raw;
            return format == PLAIN || format == DEFLATED ? read(body) : Map.of();
        } catch (final IllegalArgumentException | BufferUnderflowException | DataFormatException error) {
            return Map.of();
        }
    }

    /** librdkafka ends a text with a null byte, which does not belong to it. */
    private static String withoutEnd(final String text) {
        final int end = text.indexOf('\0');
        return end < 0 ? text : text.substring(0, end);
    }

    private static ByteBuffer inflate(final ByteBuffer deflated) throws DataFormatException {
        final byte[] input = new byte[deflated.remaining()];
        deflated.get(input);
        final byte[] output = new byte[LARGEST_BODY];
        final Inflater inflater = new Inflater();
        try {
            inflater.setInput(input);
            return ByteBuffer.wrap(output, 0, inflater.inflate(output));
        } finally {
            inflater.end();
        }
    }

    private static Map<String, Long> read(final ByteBuffer body) {
        final Map<String, Long> found = new HashMap<>();
        for (int count = body.hasRemaining() ? body.getInt() : 0; count > 0; count--) {
            final int length = body.getInt();
            if (length < 0 || length > body.remaining()) {
                return Map.of();
            }
            final byte[] name = new byte[length];
            body.get(name);
            found.put(new String(name, StandardCharsets.UTF_8), body.getLong());
        }
        return found;
    }
}
