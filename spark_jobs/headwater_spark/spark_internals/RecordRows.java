// Returns a row for each record of Kafka, with the columns of `worker/task_input.py`. The row is valid until the next
// one is read. This is the body of a class: each executor compiles it, as the code that Spark generates for queries.

public Object generate(Object[] references) {
    return new RecordRows();
}

static final class RecordRows extends org.apache.spark.sql.execution.BufferedRowIterator {
    private scala.collection.Iterator records;
    private String topic;
    private final Object[] fields = new Object[7];
    private final InternalRow row = new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(fields);

    public void init(int index, scala.collection.Iterator[] inputs) {
        partitionIndex = index;
        records = inputs[0];
    }

    protected void processNext() throws java.io.IOException {
        if (!records.hasNext()) {
            return;
        }
        org.apache.kafka.clients.consumer.ConsumerRecord record =
            (org.apache.kafka.clients.consumer.ConsumerRecord) records.next();
        if (!record.topic().equals(topic)) {
            topic = record.topic();
            fields[0] = UTF8String.fromString(topic);
        }
        fields[1] = Integer.valueOf(record.partition());
        fields[2] = Long.valueOf(record.offset());
        fields[3] = Long.valueOf(record.timestamp());
        fields[4] = record.key();
        fields[5] = record.value();
        fields[6] = headersOf(record.headers().toArray());
        append(row);
    }

    /** Return null for a record without headers, as Spark's connector. */
    private static ArrayData headersOf(org.apache.kafka.common.header.Header[] headers) {
        if (headers.length == 0) {
            return null;
        }
        Object[] items = new Object[headers.length];
        for (int i = 0; i < headers.length; i++) {
            Object[] header = new Object[] {UTF8String.fromString(headers[i].key()), headers[i].value()};
            items[i] = new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(header);
        }
        return new org.apache.spark.sql.catalyst.util.GenericArrayData(items);
    }
}
