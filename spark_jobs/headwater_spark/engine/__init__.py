"""Execute sub-topologies: records in, records out. Pure: no Spark, no Kafka client, no clock, no file."""
