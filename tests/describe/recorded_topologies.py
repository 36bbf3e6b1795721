"""Processor API topologies with the texts that Kafka Streams 4.1.1 printed."""

import json
from pathlib import Path
from typing import Any

from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SinkNode, SourceNode

_FILE = Path(__file__).parent / "recorded" / "processor_api.json"


def recorded_topologies() -> list[tuple[NodeTopology, str]]:
    return [(_topology(entry["nodes"]), entry["text"]) for entry in json.loads(_FILE.read_text())]


def _topology(nodes: list[dict[str, Any]]) -> NodeTopology:
    return NodeTopology(
        tuple(_node(node) for node in nodes),
        global_nodes=frozenset(node["source"] for node in nodes if node.get("global")),
    )


def _node(node: dict[str, Any]) -> Node:
    if "source" in node:
        return SourceNode(node["source"], tuple(node.get("topics", ())), node.get("pattern"))
    if "processor" in node:
        return ProcessorNode(node["processor"], tuple(node["parents"]), tuple(node["stores"]))
    return SinkNode(node["sink"], tuple(node["parents"]), topic=node["topic"])
