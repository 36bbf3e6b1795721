import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.Partition;
import org.apache.spark.PartitionEvaluatorFactory;
import org.apache.spark.rdd.RDD;
import org.apache.spark.sql.catalyst.InternalRow;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeAndComment;
import org.apache.spark.sql.catalyst.expressions.codegen.CodeGenerator$;
import org.apache.spark.sql.catalyst.expressions.codegen.CodegenContext;
import org.apache.spark.sql.execution.CodegenSupport;
import org.apache.spark.sql.execution.SparkPlan;
import org.apache.spark.sql.execution.WholeStageCodegenExec;
import org.apache.spark.sql.execution.metric.SQLMetric;
import org.apache.spark.sql.execution.metric.SQLMetrics;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;

/**
 * Reads the records of Kafka behind an RDD of rows, thousands of them in each row (`PackedRecords.java`).
 *
 * Spark's own RDD of Kafka's records reads them, so offsets, limits, lost data and retries are handled by Spark.
 * Only the driver uses this class. Janino, Spark's own compiler, compiles this file when the first batch is
 * packed (`packing.py`); it knows no lambdas.
 */
public final class PackedRows {
    private static final String RECORDS = "org.apache.spark.sql.kafka010.KafkaSourceRDD";
    private static final String STREAM = "org.apache.spark.sql.execution.datasources.v2.DataSourceRDD";

    private final CodeAndComment packing;
    private final int recordsAtOnce;
    private final int bytesAtOnce;
    private CodeAndComment rows;
    private CodeAndComment evaluation;
    private Object[] evaluated;

    /** `text` is `PackedRecords.java`. */
    public PackedRows(String text, int recordsAtOnce, int bytesAtOnce) {
        this.packing = compiled(text);
        this.recordsAtOnce = recordsAtOnce;
        this.bytesAtOnce = bytesAtOnce;
    }

    /**
     * Evaluate records before they are packed, with the code that Spark has generated for a plan.
     *
     * The plan reads `input`, in place of an RDD with the rows that `text` (`RecordRows.java`) returns. It is not
     * executed itself. Fails if Spark generates no code, or only for a part of the plan: then the code would read the
     * rows of the other part.
     */
    public void evaluate(String text, SparkPlan plan, RDD input) throws ReflectiveOperationException {
        if (!(plan instanceof WholeStageCodegenExec)) {
            throw new ReflectiveOperationException("Spark generates no code for " + plan.nodeName());
        }
        SparkPlan whole = ((WholeStageCodegenExec) plan).child();
        List read = CollectionConverters.asJava(((CodegenSupport) whole).inputRDDs());
        if (read.size() != 1 || read.get(0) != input) {
            throw new ReflectiveOperationException("Spark generates code only for a part of " + whole.nodeName());
        }
        scala.Tuple2 generated = ((WholeStageCodegenExec) plan).doCodeGen();
        this.rows = compiled(text);
        this.evaluation = (CodeAndComment) generated._2();
        CodeGenerator$.MODULE$.compile(evaluation);
        this.evaluated = CollectionConverters.asJava(((CodegenContext) generated._1()).references()).toArray();
    }

    /** Return the code of a class. It is compiled here, too: executors would fail each batch if they cannot. */
    private static CodeAndComment compiled(String text) {
        CodeAndComment code = new CodeAndComment(text, scala.collection.immutable.Map$.MODULE$.empty());
        CodeGenerator$.MODULE$.compile(code);
        return code;
    }

    /**
     * Return the RDD of the records behind `rows`, one partition for each range; null = there are none.
     *
     * Fails if some rows are not of Kafka, or this Spark has other classes.
     */
    public RDD records(RDD rows) throws ReflectiveOperationException {
        if (rows.getClass().getName().equals(RECORDS)) {
            return rows;
        }
        if (rows.getClass().getName().equals(STREAM)) {
            return recordsOfStream(rows);
        }
        List parents = CollectionConverters.asJava(rows.dependencies());
        if (parents.isEmpty() && rows.partitions().length > 0) {
            throw new ReflectiveOperationException(rows.getClass().getName() + " reads no records of Kafka");
        }
        List found = new ArrayList();
        for (int i = 0; i < parents.size(); i++) {
            RDD records = records(((org.apache.spark.Dependency) parents.get(i)).rdd());
            if (records != null) {
                found.add(records);
            }
        }
        if (found.isEmpty()) {
            return null;
        }
        if (found.size() == 1) {
            return (RDD) found.get(0);
        }
        return rows.context().union(
            CollectionConverters.asScala(found).toSeq(), ((RDD) found.get(0)).elementClassTag());
    }

    private RDD recordsOfStream(RDD rows) throws ReflectiveOperationException {
        Partition[] partitions = rows.partitions();
        List ranges = new ArrayList();
        Object input = null;
        for (int i = 0; i < partitions.length; i++) {
            InputPartitions.numberOf(partitions[i]); // fails if it is not of Kafka
            input = InputPartitions.inputOf(partitions[i]);
            ranges.add(InputPartitions.call(input, "offsetRange"));
        }
        if (input == null) {
            return null;
        }
        Class of = Class.forName(RECORDS, true, input.getClass().getClassLoader());
        Object[] arguments = new Object[] {
            rows.context(),
            InputPartitions.call(input, "executorKafkaParams"),
            CollectionConverters.asScala(ranges).toSeq(),
            InputPartitions.call(input, "pollTimeoutMs"),
            InputPartitions.call(input, "failOnDataLoss")
        };
        return (RDD) of.getConstructors()[0].newInstance(arguments);
    }

    /**
     * Return an RDD that reads other ranges as `records` reads its own; null = `records` is of several RDDs.
     *
     * A line of `ranges` is a topic, a partition, the first offset and the offset after the last, with tabs between.
     * The ranges are read anywhere: Spark prefers an executor for each partition.
     */
    public RDD otherRanges(RDD records, String ranges) throws ReflectiveOperationException {
        if (!records.getClass().getName().equals(RECORDS)) {
            return null;
        }
        ClassLoader loader = records.getClass().getClassLoader();
        Constructor partition = Class.forName("org.apache.kafka.common.TopicPartition", true, loader)
            .getConstructor(new Class[] {String.class, int.class});
        Constructor range = Class.forName("org.apache.spark.sql.kafka010.KafkaOffsetRange", true, loader)
            .getConstructors()[0];
        List found = new ArrayList();
        String[] lines = ranges.split("\n", -1);
        for (int i = 0; i < lines.length; i++) {
            String[] fields = lines[i].split("\t", -1);
            Object of = partition.newInstance(new Object[] {fields[0], Integer.valueOf(fields[1])});
            found.add(range.newInstance(new Object[] {
                of, Long.valueOf(fields[2]), Long.valueOf(fields[3]), scala.Option.empty()
            }));
        }
        Object[] arguments = new Object[] {
            records.context(),
            field(records, "executorKafkaParams"),
            CollectionConverters.asScala(found).toSeq(),
            field(records, "pollTimeoutMs"),
            field(records, "failOnDataLoss")
        };
        return (RDD) records.getClass().getConstructors()[0].newInstance(arguments);
    }

    /** Return the value of a private field, whose name may begin with the name of the class. */
    private static Object field(Object target, String name) throws ReflectiveOperationException {
        Field[] fields = target.getClass().getDeclaredFields();
        for (int i = 0; i < fields.length; i++) {
            if (fields[i].getName().equals(name) || fields[i].getName().endsWith("$" + name)) {
                fields[i].setAccessible(true);
                return fields[i].get(target);
            }
        }
        throw new NoSuchFieldException(target.getClass().getName() + " has no " + name);
    }

    /** Return the rows with the packed records of an RDD. */
    public RDD pack(RDD records, boolean readsValues) throws ReflectiveOperationException {
        boolean areEvaluated = evaluation != null;
        RDD input = areEvaluated ? mapped(mapped(records, rows, new Object[0]), evaluation, evaluated) : records;
        return mapped(input, packing, new Object[] {
            Integer.valueOf(recordsAtOnce), Integer.valueOf(bytesAtOnce), Boolean.valueOf(readsValues),
            Boolean.valueOf(areEvaluated)
        });
    }

    /** Return an RDD whose partitions are what the class in `code` makes of the partitions of `input`. */
    private static RDD mapped(RDD input, CodeAndComment code, Object[] references)
        throws ReflectiveOperationException {
        Object source = scala.util.Right$.MODULE$.apply(code); // instead of a broadcast
        SQLMetric time = SQLMetrics.createMetric(input.context(), "duration");
        Constructor factory = Class.forName("org.apache.spark.sql.execution.WholeStageCodegenEvaluatorFactory")
            .getConstructors()[0];
        Object evaluators = factory.newInstance(new Object[] {source, time, references});
        return input.mapPartitionsWithEvaluator(
            (PartitionEvaluatorFactory) evaluators, scala.reflect.ClassTag$.MODULE$.apply(InternalRow.class));
    }
}
