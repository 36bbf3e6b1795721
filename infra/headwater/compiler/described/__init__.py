"""Completes the node topology of a `Topology#describe()` text.

The text has nodes, stores and topics, but no explicit counts, kinds and retention of stores, logging,
optimization or co-partitioning. What follows with certainty from names and structure is added here. Other
details have Kafka Streams' default (logging on, derived counts) or are reported as missing. `find_unknown`
lists those that an import must not assume.
"""

from headwater.compiler.described.cluster import complete_from_cluster, has_run, live_naming
from headwater.compiler.described.comparison import compare_with_cluster
from headwater.compiler.described.completion import complete_topology
from headwater.compiler.described.unknown import find_unknown

__all__ = [
    "compare_with_cluster",
    "complete_from_cluster",
    "complete_topology",
    "find_unknown",
    "has_run",
    "live_naming",
]
