package headwater.streamstest;

import io.headwater.streams.partitioning.StaticPartitioner;

import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.errors.InvalidPartitionsException;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** Prints the partition of each line of the file of vectors: configs, key in hexadecimal digits, partition count. */
public final class PartitionVectors {
    private PartitionVectors() {
    }

    public static void main(final String[] arguments) throws Exception {
        for (final String line : Files.readAllLines(Path.of(arguments[0]))) {
            final String[] words = line.split("\t", -1);
            System.out.println(result(words[0], words[1], Integer.parseInt(words[2])));
        }
    }

    private static String result(final String configs, final String key, final int count) {
        final Map<String, String> parsed = new HashMap<>();
        for (final String entry : configs.split(";")) {
            parsed.put("static.partitioner." + entry.substring(0, entry.indexOf(' ')), entry.substring(entry.indexOf(' ') + 1));
        }
        final List<PartitionInfo> partitions = new ArrayList<>();
        for (int partition = 0; partition < count; partition++) {
            partitions.add(new PartitionInfo("t", partition, Node.noNode(), new Node[0], new Node[0]));
        }
        final byte[] bytes = new byte[key.length() / 2];
        for (int index = 0; index < bytes.length; index++) {
            bytes[index] = (byte) Integer.parseInt(key.substring(2 * index, 2 * index + 2), 16);
        }
        final StaticPartitioner partitioner = new StaticPartitioner();
        try {
            partitioner.configure(parsed);
            final Cluster cluster = new Cluster("c", List.of(Node.noNode()), partitions, Set.of(), Set.of());
            return String.valueOf(partitioner.partition("t", null, bytes, null, null, cluster));
        } catch (final InvalidPartitionsException error) {
            return "expand";
        } catch (final IllegalArgumentException error) {
            return "unknown prefix";
        } catch (final ConfigException error) {
            return "refused";
        }
    }
}
