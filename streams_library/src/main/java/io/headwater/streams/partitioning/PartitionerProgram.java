package io.headwater.streams.partitioning;

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.Reader;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.SynchronousQueue;

/**
 * The program that {@code headwater reshard --jar} runs: it returns the partitions of many keys at once.
 *
 * <p>Arguments: the class of the partitioner, the serde of its keys, a properties file or an empty text, and the file to which answers
 * are written. A request on standard input has a topic, partition counts and serialized keys. An answer begins with {@link #DONE}, and
 * has a partition for each key and each count; or with {@link #FAILED}, and has a text. The first answer comes without a request, when
 * the partitioner is created. Standard output is not used: the code of the application, agents and Java itself may write to it. The
 * program ends with its standard input, also while a partitioner does not return.
 */
public final class PartitionerProgram {
    private static final int DONE = 0;
    private static final int FAILED = 1;
    private static final int BUFFER_BYTES = 1 << 16;

    private PartitionerProgram() {
    }

    public static void main(final String[] arguments) throws IOException, InterruptedException {
        final DataOutputStream answers = new DataOutputStream(
            new BufferedOutputStream(new FileOutputStream(arguments[3]), BUFFER_BYTES)
        );
        System.setIn(InputStream.nullInputStream());
        final BlockingQueue<Request> requests = new SynchronousQueue<>();
        final Thread reader = new Thread(() -> read(requests), "requests");
        reader.setDaemon(true);
        reader.start();
        final ApplicationPartitioner partitioner;
        try {
            partitioner = new ApplicationPartitioner(arguments[0], arguments[1], properties(arguments[2]));
        } catch (final Throwable error) {
            fail(answers, Failures.describe(error));
            Runtime.getRuntime().halt(0);
            return;
        }
        answers.writeByte(DONE);
        answers.flush();
        while (true) {
            answer(requests.take(), partitioner, answers);
        }
    }

    private static void answer(final Request request, final ApplicationPartitioner partitioner, final DataOutputStream answers)
        throws IOException {
        final ByteBuffer bytes;
        try {
            final int[] found = new int[request.counts.length];
            bytes = ByteBuffer.allocate(request.keys.length * found.length * Integer.BYTES);
            final IntBuffer partitions = bytes.asIntBuffer();
            for (final byte[] key : request.keys) {
                partitioner.partition(request.topic, key, request.counts, found);
                partitions.put(found);
            }
        } catch (final Throwable error) {
            fail(answers, Failures.describe(error));
            return;
        }
        answers.writeByte(DONE);
        answers.write(bytes.array());
        answers.flush();
    }

    private static void fail(final DataOutputStream answers, final String text) throws IOException {
        final byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        answers.writeByte(FAILED);
        answers.writeInt(bytes.length);
        answers.write(bytes);
        answers.flush();
    }

    private static void read(final BlockingQueue<Request> requests) {
        try {
            final DataInputStream input = new DataInputStream(
                new BufferedInputStream(new FileInputStream(FileDescriptor.in), BUFFER_BYTES)
            );
            while (true) {
                requests.put(new Request(input));
            }
        } catch (final IOException | InterruptedException error) {
            Runtime.getRuntime().halt(0);
        } catch (final Throwable error) {
            System.err.println("A request cannot be read: " + error.getClass().getName());
            Runtime.getRuntime().halt(1);
        }
    }

    private static Map<String, Object> properties(final String file) throws IOException {
        final Properties properties = new Properties();
        if (!file.isEmpty()) {
            try (Reader reader = Files.newBufferedReader(Path.of(file), StandardCharsets.UTF_8)) {
                properties.load(reader);
            }
        }
        final Map<String, Object> found = new HashMap<>();
        properties.stringPropertyNames().forEach(name -> found.put(name, properties.getProperty(name)));
        return found;
    }

    /** Keys of a topic, whose partitions are requested for some counts. */
    private static final class Request {
        private final String topic;
        private final int[] counts;
        private final byte[][] keys;

        Request(final DataInputStream input) throws IOException {
            topic = input.readUTF();
            counts = new int[input.readInt()];
            for (int index = 0; index < counts.length; index++) {
                counts[index] = input.readInt();
            }
            keys = new byte[input.readInt()][];
            for (int index = 0; index < keys.length; index++) {
                keys[index] = new byte[input.readInt()];
            }
            for (final byte[] key : keys) {
                input.readFully(key);
            }
        }
    }
}
