import org.apache.spark.Partition;

/**
 * Which partition of a topic is read by a Spark partition of Spark's Kafka sources.
 *
 * Only the driver uses this class. Janino, Spark's own compiler, compiles this file before the files that use it
 * (`java_classes.py`).
 */
public final class InputPartitions {
    private InputPartitions() {
    }

    /** Return the number of the topic's partition. Fails if the rows are not of Kafka, or this Spark has other classes. */
    public static int numberOf(Partition partition) throws ReflectiveOperationException {
        Object input = inputOf(partition);
        if (!has(input, "offsetRange")) {
            throw new ReflectiveOperationException(input.getClass().getName() + " reads no partition of Kafka");
        }
        Object range = call(input, "offsetRange");
        return ((Integer) call(call(range, "topicPartition"), "partition")).intValue();
    }

    /** Return what has the offsets: in a stream, the input of the partition; in a batch, the partition itself. */
    public static Object inputOf(Object partition) throws ReflectiveOperationException {
        if (has(partition, "parentPartition")) { // of a union
            return inputOf(call(partition, "parentPartition"));
        }
        if (has(partition, "inputPartition")) {
            return call(call(partition, "inputPartition"), "get");
        }
        if (has(partition, "inputPartitions")) { // in other versions of Spark
            Object inputs = call(partition, "inputPartitions");
            if (((Integer) call(inputs, "size")).intValue() != 1) {
                throw new ReflectiveOperationException("a Spark partition reads several inputs");
            }
            return call(inputs, "head");
        }
        return partition;
    }

    public static boolean has(Object target, String method) {
        try {
            target.getClass().getMethod(method, new Class[0]);
            return true;
        } catch (NoSuchMethodException missing) {
            return false;
        }
    }

    public static Object call(Object target, String method) throws ReflectiveOperationException {
        java.lang.reflect.Method found = target.getClass().getMethod(method, new Class[0]);
        found.setAccessible(true);
        return found.invoke(target, new Object[0]);
    }
}
