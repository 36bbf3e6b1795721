"""PURE. From a described text to a node topology that can be counted: what the text lacks is filled in or asked for."""

from infra.model.nodes import NodeTopology
from infra.model.topology import DescribedTopology


def complete(described: DescribedTopology) -> NodeTopology:
    return described.nodes
