import org.apache.spark.Partition;
import org.apache.spark.rdd.RDD;

/**
 * Where the records end that Spark's Kafka sources read for an RDD.
 *
 * Only the driver uses this class. Janino, Spark's own compiler, compiles this file (`input_partitions.py`).
 */
public final class InputRanges {
    private InputRanges() {
    }

    /**
     * Return a line for each input partition: topic, number and the offset after its last record, with tabs between.
     *
     * Partitions that are not of Kafka are omitted. Fails if this Spark has other classes.
     */
    public static String ends(RDD rows) throws ReflectiveOperationException {
        StringBuilder found = new StringBuilder();
        Partition[] partitions = rows.partitions();
        for (int i = 0; i < partitions.length; i++) {
            Object input = InputPartitions.inputOf(partitions[i]);
            if (!InputPartitions.has(input, "offsetRange")) {
                continue;
            }
            Object range = InputPartitions.call(input, "offsetRange");
            Object partition = InputPartitions.call(range, "topicPartition");
            found.append(InputPartitions.call(partition, "topic")).append('\t');
            found.append(InputPartitions.call(partition, "partition")).append('\t');
            found.append(InputPartitions.call(range, "untilOffset")).append('\n');
        }
        return found.toString();
    }
}
