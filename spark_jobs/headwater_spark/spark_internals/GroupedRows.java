import java.io.Serializable;
import org.apache.spark.Partition;
import org.apache.spark.rdd.PartitionCoalescer;
import org.apache.spark.rdd.PartitionGroup;
import org.apache.spark.rdd.RDD;
import scala.Option;

/**
 * Reads the input partitions of Kafka that belong together in one task, one after the other, without a shuffle.
 *
 * Only the driver uses this class. A task that is sent to an executor contains a text instead
 * (`writeReplace`), so executors do not need the class. Janino, Spark's own compiler, compiles this file when
 * the first batch is grouped (`grouping.py`); it knows no lambdas.
 */
public final class GroupedRows implements PartitionCoalescer, Serializable {
    private final String[] groups;

    /** `groups` are the groups of the partitions of a topic, in the order of their numbers. */
    public GroupedRows(String[] groups) {
        this.groups = groups;
    }

    /**
     * Return `rows` with `count` partitions, one for each group; null if a partition is not of Kafka.
     *
     * `groups` are separated by line ends: each call from Python costs as much as all of them together.
     */
    public static RDD group(RDD rows, String groups, int count) {
        GroupedRows grouped = new GroupedRows(groups.split("\n", -1));
        Partition[] partitions = rows.partitions();
        for (int i = 0; i < partitions.length; i++) {
            int input = inputPartition(partitions[i]);
            if (input < 0 || input >= grouped.groups.length) {
                return null;
            }
        }
        return rows.coalesce(count, false, Option.apply(grouped), null);
    }

    public PartitionGroup[] coalesce(int count, RDD parent) {
        PartitionGroup[] found = new PartitionGroup[count];
        for (int i = 0; i < count; i++) {
            found[i] = new PartitionGroup(Option.empty());
        }
        Partition[] partitions = parent.partitions();
        for (int i = 0; i < partitions.length; i++) {
            int group = Integer.parseInt(groups[inputPartition(partitions[i])]);
            found[group].partitions().addOne(partitions[i]);
        }
        return found;
    }

    /** Return the partition of the topic that a partition of Spark's Kafka sources reads; -1 = unknown. */
    private static int inputPartition(Partition partition) {
        try {
            Object range = call(inputOf(partition), "offsetRange");
            return ((Integer) call(call(range, "topicPartition"), "partition")).intValue();
        } catch (ReflectiveOperationException other) {
            return -1;
        }
    }

    /** Return what has the offsets: in a stream, the input of the partition; in a batch, the partition itself. */
    private static Object inputOf(Partition partition) throws ReflectiveOperationException {
        try {
            Object input = call(partition, "inputPartition");
            return input instanceof Option && ((Option) input).isDefined() ? ((Option) input).get() : input;
        } catch (NoSuchMethodException otherVersion) {
            try {
                return call(call(partition, "inputPartitions"), "head");
            } catch (NoSuchMethodException ofBatch) {
                return partition;
            }
        }
    }

    private static Object call(Object target, String method) throws ReflectiveOperationException {
        java.lang.reflect.Method found = target.getClass().getMethod(method, new Class[0]);
        found.setAccessible(true);
        return found.invoke(target, new Object[0]);
    }

    protected Object writeReplace() { // not private: Janino gives private methods other names
        return "";
    }
}
