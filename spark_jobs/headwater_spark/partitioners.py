"""Partitioners for producers in Python.

    from headwater_spark.partitioners import linear_partition

    partition = linear_partition(key, initial=2, num_partitions=3)
    producer.produce("orders", value, key, partition)

`initial` is the number of partitions that the topic had when the application was set up, `num_partitions`
the present one. When partitions are added, flush the producer before you use the new number: so the records
of each key keep their order.
"""

from headwater_spark.engine.partitioners.hashing import linear_partition

__all__ = ["linear_partition"]
