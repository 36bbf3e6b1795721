"""The formats of keys and values at a node, as far as they are known."""

import pytest

from headwater.compiler import build_nodes
from headwater.model.nodes import NodeTopology
from headwater.spec import load_text
from headwater_spark.engine.program.formats import Defaults, NodeFormats, formats_by_node


def nodes_of(calls: str) -> NodeTopology:
    loaded = load_text(f"application: {{id: app}}\ntopology:\n{calls}", "doc.yaml")
    assert not loaded.problems
    return build_nodes(loaded.documents[0])


def at_last(calls: str) -> NodeFormats:
    """Return the formats at the `filter` that ends `calls`."""
    nodes = nodes_of(f"{calls}  - filter: {{where: 'true', name: last}}\n")
    return formats_by_node(nodes, Defaults(value="double"))["last"]


@pytest.mark.parametrize(
    ("calls", "known"),
    [
        ("", NodeFormats("long", "json")),
        ("  - filter: {where: 'true'}\n", NodeFormats("long", "json")),
        ("  - mapValues: {value: '1'}\n", NodeFormats("long", None)),
        ("  - selectKey: {key: '1'}\n", NodeFormats(None, "json")),
        ("  - map: {key: '1', value: '2'}\n", NodeFormats()),
        (
            "  - selectKey: {key: '1'}\n  - repartition: {serdes: {key: string}}\n",
            NodeFormats("string", "json"),
        ),
        ("  - groupByKey:\n  - count:\n  - toStream:\n", NodeFormats("long", "long")),
        (
            "  - groupByKey:\n  - windowedBy: {tumbling: {size: 1h}}\n  - count:\n  - toStream:\n",
            NodeFormats(None, "long"),
        ),
        ("  - merge: {with: same}\n", NodeFormats("long", "json")),
        ("  - merge: {with: other}\n", NodeFormats("long", None)),
    ],
)
def test_formats_are_known_until_an_operator_changes_key_or_value(calls: str, known: NodeFormats) -> None:
    read = "  - stream: {topic: a, as: a, serdes: {key: long, value: json}}\n"
    same = "  - stream: {topic: b, as: same, serdes: {key: long, value: json}}\n"
    other = "  - stream: {topic: c, as: other, serdes: {key: long, value: string}}\n"
    assert at_last(f"{same}{other}{read}{calls}") == known


def test_formats_default_to_those_of_the_application() -> None:
    assert at_last("  - stream: {topic: a}\n") == NodeFormats("string", "double")
