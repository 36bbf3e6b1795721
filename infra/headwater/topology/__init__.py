"""Topologies as Python objects: a builder with Kafka Streams' names that makes topology documents.

    from headwater.topology import StreamsBuilder

    builder = StreamsBuilder()
    orders = builder.stream("orders", serdes={"key": "string", "value": "json"})
    counts = orders.group_by(key="value.customer", name="by-customer").count(materialized="counts")
    counts.to_stream().to("busy-customers")
    document = builder.document("busy-customers", config={"processing.guarantee": "exactly_once_v2"})
    document.write("topologies/busy-customers.yaml")

Belongs here: what records the calls. What the calls mean is decided from the document, as from a file.
"""

from headwater.topology.builder import BuiltDocument, StreamsBuilder, Topology
from headwater.topology.stream_or_table import GlobalKTable
from headwater.topology.streams import (
    BranchedKStream,
    CogroupedKStream,
    KGroupedStream,
    KGroupedTable,
    KStream,
    KTable,
    WindowedKStream,
)

__all__ = [
    "BranchedKStream",
    "BuiltDocument",
    "CogroupedKStream",
    "GlobalKTable",
    "KGroupedStream",
    "KGroupedTable",
    "KStream",
    "KTable",
    "StreamsBuilder",
    "Topology",
    "WindowedKStream",
]
