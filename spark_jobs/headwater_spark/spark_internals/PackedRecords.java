// Puts thousands of records of Kafka into one row, in Arrow's layout. This is the body of a class: each executor
// compiles it, as the code that Spark generates for queries. Janino, Spark's compiler, knows no lambdas and no generics.

public Object generate(Object[] references) {
    return new PackedRecords(references);
}

/** The rows of a Spark partition. `worker/packed_records.py` names their fields, and reads them. */
static final class PackedRecords extends org.apache.spark.sql.execution.BufferedRowIterator {
    private static final byte[] EMPTY = new byte[0];
    private final int recordsAtOnce;
    private final int bytesAtOnce;
    private final boolean readsValues;
    private scala.collection.Iterator records;
    private org.apache.kafka.clients.consumer.ConsumerRecord next;
    private int count;
    private final byte[] offsets;
    private final byte[] times;
    private final byte[] headerEnds;
    private final Items keys = new Items();
    private final Items values = new Items();
    private final Items headerKeys = new Items();
    private final Items headerValues = new Items();

    PackedRecords(Object[] references) {
        recordsAtOnce = ((Integer) references[0]).intValue();
        bytesAtOnce = ((Integer) references[1]).intValue();
        readsValues = ((Boolean) references[2]).booleanValue();
        offsets = new byte[8 * recordsAtOnce];
        times = new byte[8 * recordsAtOnce];
        headerEnds = new byte[4 * (recordsAtOnce + 1)];
    }

    public void init(int index, scala.collection.Iterator[] inputs) {
        partitionIndex = index;
        records = inputs[0];
    }

    protected void processNext() throws java.io.IOException {
        if (next == null) {
            next = read();
        }
        if (next == null) {
            return;
        }
        String topic = next.topic();
        int partition = next.partition();
        count = 0;
        keys.clear();
        values.clear();
        headerKeys.clear();
        headerValues.clear();
        while (next != null && hasRoom() && next.partition() == partition && next.topic().equals(topic)) {
            add(next);
            next = read();
        }
        append(row(topic, partition));
    }

    private org.apache.kafka.clients.consumer.ConsumerRecord read() {
        return records.hasNext() ? (org.apache.kafka.clients.consumer.ConsumerRecord) records.next() : null;
    }

    private boolean hasRoom() {
        return count < recordsAtOnce
            && (long) keys.size + values.size + headerKeys.size + headerValues.size < bytesAtOnce;
    }

    private void add(org.apache.kafka.clients.consumer.ConsumerRecord record) {
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
        count += 1;
        Platform.putInt(headerEnds, Platform.BYTE_ARRAY_OFFSET + 4L * count, headerKeys.count);
    }

    private InternalRow row(String topic, int partition) {
        Object[] fields = new Object[18];
        fields[0] = UTF8String.fromString(topic);
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
            hasNull = true;
        } else {
            int end = Math.addExact(size, item.length);
            bytes = grown(bytes, end);
            System.arraycopy(item, 0, bytes, size, item.length);
            size = end;
            present = grown(present, count / 8 + 1);
            present[count >> 3] |= (byte) (1 << (count & 7));
        }
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
