/**
 * Static partitioners (KIP-878, earlier draft): a key stays on its partition when partitions are added.
 *
 * <p>The results are, byte for byte, the results of Headwater's runtime for Spark.
 */
package io.headwater.streams.partitioning;
