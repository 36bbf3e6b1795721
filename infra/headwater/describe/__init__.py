"""Reads and writes texts of Kafka Streams' `Topology#describe()`; written texts are byte for byte equal."""

from headwater.describe.pushed import UnusableTopologyError, pushed_topology, without_prefix
from headwater.describe.read import read_description, read_descriptions
from headwater.describe.write import write_description

__all__ = [
    "UnusableTopologyError",
    "pushed_topology",
    "read_description",
    "read_descriptions",
    "without_prefix",
    "write_description",
]
