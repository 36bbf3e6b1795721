"""From a text that `Topology#describe()` printed to a node topology that can be counted.

The text tells nodes, stores and topics, not: explicit counts, kinds and retention of stores, logging,
optimization, co-partitioning. What follows for certain from names and structure is filled in here, what has
Kafka Streams' default stays at it (logging on, counts derived), the rest is asked for by name.
"""

from infra.compiler.described.cluster import complete_from_cluster
from infra.compiler.described.completion import complete

__all__ = ["complete", "complete_from_cluster"]
