"""Completes the node topology of a `Topology#describe()` text.

The text has nodes, stores and topics, but no explicit counts, kinds and retention of stores, logging,
optimization or co-partitioning. What follows with certainty from names and structure is added here. Other
details have Kafka Streams' default (logging on, derived counts) or are reported as missing.
"""

from infra.compiler.described.cluster import complete_from_cluster
from infra.compiler.described.completion import complete

__all__ = ["complete", "complete_from_cluster"]
