/**
 * A client supplier that makes a Kafka Streams application obey KIP-698 and KIP-878 by configuration alone.
 *
 * <p>{@code default.client.supplier=io.headwater.streams.HeadwaterClientSupplier} loads it. Without further configs it
 * changes nothing.
 */
package io.headwater.streams;
