"""The input of queries: Kafka as a source of Spark, rounds, steps, added partitions, signals of records."""
