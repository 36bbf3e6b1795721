import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.Partition;
import org.apache.spark.SparkContext;
import org.apache.spark.TaskContext;
import org.apache.spark.rdd.RDD;
import org.apache.spark.status.api.v1.ExecutorSummary;
import scala.collection.immutable.Seq;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * The rows of another RDD, computed where the driver prefers: only the scheduler, in the driver, uses this class.
 *
 * A task that is sent to an executor contains the other RDD instead (`writeReplace`), so executors do not need
 * the class. Partitions and rows are the same. Janino, Spark's own compiler, compiles this file when an
 * application starts (`placement.py`); it knows no lambdas.
 */
public final class PlacedRows extends RDD {
    private final RDD parent;
    private final String[] locations;

    /** `locations` is the preferred executor of each partition; empty = any executor. */
    public PlacedRows(RDD parent, ClassTag rows, String[] locations) {
        super(parent, rows);
        this.parent = parent;
        this.locations = locations;
    }

    /**
     * Return the rows of `parent`, placed.
     *
     * `locations` is the preferred executor of each partition, or of each input partition of Kafka if
     * `byInputPartition`. They are separated by line ends: each call from Python costs as much as all of them
     * together.
     */
    public static PlacedRows place(RDD parent, String locations, boolean byInputPartition)
            throws ReflectiveOperationException {
        String[] given = locations.split("\n", -1);
        return new PlacedRows(
            parent, parent.elementClassTag(), byInputPartition ? ofPartitions(parent.partitions(), given) : given);
    }

    private static String[] ofPartitions(Partition[] partitions, String[] ofInputs)
            throws ReflectiveOperationException {
        String[] found = new String[partitions.length];
        for (int i = 0; i < partitions.length; i++) {
            int input = InputPartitions.numberOf(partitions[i]);
            found[i] = input < ofInputs.length ? ofInputs[input] : ""; // a partition was added
        }
        return found;
    }

    /**
     * Return a line "id host cores" for each executor that gets tasks.
     *
     * An executor has no address from its registration until its block manager is registered, too.
     */
    public static String executors(SparkContext context) {
        StringBuilder found = new StringBuilder();
        List all = CollectionConverters.asJava(context.statusStore().executorList(true));
        for (int i = 0; i < all.size(); i++) {
            ExecutorSummary each = (ExecutorSummary) all.get(i);
            String address = each.hostPort();
            if (!each.id().equals("driver") && !each.isExcluded() && address != null && address.contains(":")) {
                String host = address.substring(0, address.lastIndexOf(':'));
                found.append(each.id() + " " + host + " " + each.totalCores() + "\n");
            }
        }
        return found.toString();
    }

    public scala.collection.Iterator compute(Partition partition, TaskContext context) {
        return parent.iterator(partition, context);
    }

    public Partition[] getPartitions() {
        return parent.partitions();
    }

    public Seq getPreferredLocations(Partition partition) {
        int index = partition.index();
        List found = new ArrayList();
        if (index < locations.length && locations[index].length() > 0) {
            found.add(locations[index]);
        }
        return CollectionConverters.asScala(found).toSeq();
    }

    protected Object writeReplace() { // not private: Janino gives private methods other names
        return parent;
    }
}
