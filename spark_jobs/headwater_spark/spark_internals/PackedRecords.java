// Puts thousands of records into one row, in Arrow's layout. This is the body of a class: each executor compiles
// it, as the code that Spark generates for queries. Janino, Spark's compiler, knows no lambdas and no generics.

public Object generate(Object[] references) {
    int recordsAtOnce = ((Integer) references[0]).intValue();
    int bytesAtOnce = ((Integer) references[1]).intValue();
    boolean readsValues = ((Boolean) references[2]).booleanValue();
    boolean areEvaluated = ((Boolean) references[3]).booleanValue();
    if (areEvaluated) {
        return new PackedEvaluatedRows(recordsAtOnce, bytesAtOnce);
    }
    return new PackedKafkaRecords(recordsAtOnce, bytesAtOnce, readsValues);
}

/** The rows of a Spark partition. `worker/task_rows.py` names their fields, and reads them. */
static abstract class PackedRecords extends org.apache.spark.sql.execution.BufferedRowIterator {
    private final int recordsAtOnce;
    private final int bytesAtOnce;
    private scala.collection.Iterator input;
    private Object next;
    int count;
    final byte[] offsets;
    final byte[] times;
    private final byte[] headerEnds;
    final Items keys = new Items();
    final Items values = new Items();
    final Items headerKeys = new Items();
    final Items headerValues = new Items();

    PackedRecords(int recordsAtOnce, int bytesAtOnce) {
        this.recordsAtOnce = recordsAtOnce;
        this.bytesAtOnce = bytesAtOnce;
        offsets = new byte[8 * recordsAtOnce];
        times = new byte[8 * recordsAtOnce];
        headerEnds = new byte[4 * (recordsAtOnce + 1)];
    }

    public void init(int index, scala.collection.Iterator[] inputs) {
        partitionIndex = index;
        input = inputs[0];
    }

    protected void processNext() throws java.io.IOException {
        if (next == null) {
            next = read();
        }
        if (next == null) {
            return;
        }
        count = 0;
        keys.clear();
        values.clear();
        headerKeys.clear();
        headerValues.clear();
        begin(next);
        while (next != null && hasRoom() && isOfSamePartition(next)) {
            add(next);
            count += 1;
            Platform.putInt(headerEnds, Platform.BYTE_ARRAY_OFFSET + 4L * count, headerKeys.count);
            next = read();
        }
        append(row(topic(), partition()));
    }

    /** Begin a row with the topic and the partition of a record. */
    abstract void begin(Object record);

    abstract boolean isOfSamePartition(Object record);

    /** Return the topic of the row; null = the row has no field for it. */
    abstract UTF8String topic();

    abstract int partition();

    /** Add all fields of a record. It is not used afterwards. */
    abstract void add(Object record);

    private Object read() {
        return input.hasNext() ? input.next() : null;
    }

    private boolean hasRoom() {
        return count < recordsAtOnce
            && (long) keys.size + values.size + headerKeys.size + headerValues.size < bytesAtOnce;
    }

    private InternalRow row(UTF8String topic, int partition) {
        Object[] fields = new Object[18];
        fields[0] = topic;
        fields[1] = Integer.valueOf(partition);
        fields[2] = Integer.valueOf(count);
        fields[3] = java.util.Arrays.copyOf(offsets, 8 * count);
        fields[4] = java.util.Arrays.copyOf(times, 8 * count);
        keys.write(fields, 5);
        values.write(fields, 8);
        if (headerKeys.count > 0) {
            fields[11] = java.util.Arrays.copyOf(headerEnds, 4 * (count + 1));
            headerKeys.write(fields, 12);
            headerValues.write(fields, 15);
        }
        return new org.apache.spark.sql.catalyst.expressions.GenericInternalRow(fields);
    }
}

/** Packs records of Kafka. */
static final class PackedKafkaRecords extends PackedRecords {
    private static final byte[] EMPTY = new byte[0];
    private final boolean readsValues;
    private String topic;
    private int partition;

    PackedKafkaRecords(int recordsAtOnce, int bytesAtOnce, boolean readsValues) {
        super(recordsAtOnce, bytesAtOnce);
        this.readsValues = readsValues;
    }

    void begin(Object given) {
        org.apache.kafka.clients.consumer.ConsumerRecord record =
            (org.apache.kafka.clients.consumer.ConsumerRecord) given;
        topic = record.topic();
        partition = record.partition();
    }

    boolean isOfSamePartition(Object given) {
        org.apache.kafka.clients.consumer.ConsumerRecord record =
            (org.apache.kafka.clients.consumer.ConsumerRecord) given;
        return record.partition() == partition && record.topic().equals(topic);
    }

    UTF8String topic() {
        return UTF8String.fromString(topic);
    }

    int partition() {
        return partition;
    }

    void add(Object given) {
        org.apache.kafka.clients.consumer.ConsumerRecord record =
            (org.apache.kafka.clients.consumer.ConsumerRecord) given;
        Platform.putLong(offsets, Platform.BYTE_ARRAY_OFFSET + 8L * count, record.offset());
        Platform.putLong(times, Platform.BYTE_ARRAY_OFFSET + 8L * count, record.timestamp());
        keys.add((byte[]) record.key());
        byte[] value = (byte[]) record.value();
        values.add(readsValues || value == null ? value : EMPTY);
        org.apache.kafka.common.header.Header[] headers = record.headers().toArray();
        for (int i = 0; i < headers.length; i++) {
            headerKeys.add(headers[i].key().getBytes(java.nio.charset.StandardCharsets.UTF_8));
            headerValues.add(headers[i].value());
        }
    }
}

/** Packs rows that Spark SQL has evaluated: the columns of `worker/task_input.py`, with or without the topic. */
static final class PackedEvaluatedRows extends PackedRecords {
    private static final int COLUMNS = 7;
    private UTF8String topic;
    private int partition;
    private int first;

    PackedEvaluatedRows(int recordsAtOnce, int bytesAtOnce) {
        super(recordsAtOnce, bytesAtOnce);
    }

    void begin(Object given) {
        UnsafeRow row = (UnsafeRow) given;
        first = row.numFields() - COLUMNS;
        topic = first < 0 ? null : row.getUTF8String(0).copy(); // the bytes of the row change with the next one
        partition = row.getInt(first + 1);
    }

    boolean isOfSamePartition(Object given) {
        UnsafeRow row = (UnsafeRow) given;
        return row.getInt(first + 1) == partition && (topic == null || row.getUTF8String(0).equals(topic));
    }

    UTF8String topic() {
        return topic;
    }

    int partition() {
        return partition;
    }

    void add(Object given) {
        UnsafeRow row = (UnsafeRow) given;
        Platform.putLong(offsets, Platform.BYTE_ARRAY_OFFSET + 8L * count, row.getLong(first + 2));
        Platform.putLong(times, Platform.BYTE_ARRAY_OFFSET + 8L * count, row.getLong(first + 3));
        keys.addField(row, first + 4);
        values.addField(row, first + 5);
        if (!row.isNullAt(first + 6)) {
            UnsafeArrayData headers = row.getArray(first + 6);
            for (int i = 0; i < headers.numElements(); i++) {
                UnsafeRow header = headers.getStruct(i, 2);
                headerKeys.addField(header, 0);
                headerValues.addField(header, 1);
            }
        }
    }
}

/** Byte strings or nulls: where each one ends, their bytes, and a bit for each one that is not null. */
static final class Items {
    private static final int KEPT = 1 << 23;
    int count;
    int size;
    private boolean hasNull;
    private byte[] ends = new byte[4096];
    private byte[] bytes = new byte[4096];
    private byte[] present = new byte[512];

    void clear() {
        count = 0;
        size = 0;
        hasNull = false;
        java.util.Arrays.fill(present, (byte) 0);
        if (bytes.length > KEPT) {
            bytes = new byte[4096];
        }
    }

    void add(byte[] item) {
        if (item == null) {
            addNull();
        } else {
            add(item, Platform.BYTE_ARRAY_OFFSET, item.length);
        }
    }

    /** Add a string or bytes of a row. */
    void addField(UnsafeRow row, int field) {
        if (row.isNullAt(field)) {
            addNull();
        } else {
            long offsetAndSize = row.getLong(field);
            add(row.getBaseObject(), row.getBaseOffset() + (offsetAndSize >>> 32), (int) offsetAndSize);
        }
    }

    private void add(Object from, long at, int length) {
        int end = Math.addExact(size, length);
        bytes = grown(bytes, end);
        Platform.copyMemory(from, at, bytes, Platform.BYTE_ARRAY_OFFSET + size, length);
        size = end;
        present = grown(present, count / 8 + 1);
        present[count >> 3] |= (byte) (1 << (count & 7));
        addEnd();
    }

    private void addNull() {
        hasNull = true;
        addEnd();
    }

    private void addEnd() {
        count += 1;
        ends = grown(ends, 4 * (count + 1));
        Platform.putInt(ends, Platform.BYTE_ARRAY_OFFSET + 4L * count, size);
    }

    void write(Object[] fields, int first) {
        fields[first] = java.util.Arrays.copyOf(ends, 4 * (count + 1));
        fields[first + 1] = java.util.Arrays.copyOf(bytes, size);
        fields[first + 2] = hasNull ? java.util.Arrays.copyOf(present, (count + 7) / 8) : null;
    }

    private static byte[] grown(byte[] array, int length) {
        if (length <= array.length) {
            return array;
        }
        return java.util.Arrays.copyOf(array, (int) Math.min(Integer.MAX_VALUE - 8, Math.max(length, 2L * array.length)));
    }
}
