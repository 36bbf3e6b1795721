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
 * the first batch is grouped (`input_partitions.py`); it knows no lambdas.
 */
public final class GroupedRows implements PartitionCoalescer, Serializable {
    private final int[] groups;

    /** `groups` are the groups of the partitions of the RDD that is grouped. */
    public GroupedRows(int[] groups) {
        this.groups = groups;
    }

    /**
     * Return `rows` with `count` partitions, one for each group; null if a partition was added to a topic.
     *
     * `groups` are the groups of the partitions of a topic, in the order of their numbers. They are separated by
     * line ends: each call from Python costs as much as all of them together.
     */
    public static RDD group(RDD rows, String groups, int count) throws ReflectiveOperationException {
        String[] ofInputs = groups.split("\n", -1);
        Partition[] partitions = rows.partitions();
        int[] found = new int[partitions.length];
        for (int i = 0; i < partitions.length; i++) {
            int input = InputPartitions.numberOf(partitions[i]);
            if (input >= ofInputs.length) {
                return null;
            }
            found[i] = Integer.parseInt(ofInputs[input]);
        }
        return rows.coalesce(count, false, Option.apply(new GroupedRows(found)), null);
    }

    public PartitionGroup[] coalesce(int count, RDD parent) {
        PartitionGroup[] found = new PartitionGroup[count];
        for (int i = 0; i < count; i++) {
            found[i] = new PartitionGroup(Option.empty());
        }
        Partition[] partitions = parent.partitions();
        for (int i = 0; i < partitions.length; i++) {
            found[groups[i]].partitions().addOne(partitions[i]);
        }
        return found;
    }

    protected Object writeReplace() { // not private: Janino gives private methods other names
        return "";
    }
}
