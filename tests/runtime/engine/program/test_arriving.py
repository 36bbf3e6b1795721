"""What is known of keys and values where expressions meet them."""

import pytest

from infra.compiler import build_nodes
from infra.model.nodes import NodeTopology
from infra.spec import load_text
from spark_jobs.runtime.engine.program.arriving import Arriving, arriving
from spark_jobs.runtime.engine.program.formats import Defaults


def nodes_of(calls: str) -> NodeTopology:
    loaded = load_text(f"application: {{id: app}}\ntopology:\n{calls}", "doc.yaml")
    assert not loaded.problems
    return build_nodes(loaded.documents[0])


def at_last(calls: str) -> Arriving:
    """What comes to the `filter` that ends `calls`."""
    nodes = nodes_of(f"{calls}  - filter: {{where: 'true', name: last}}\n")
    return arriving(nodes, Defaults(value="double"))["last"]


@pytest.mark.parametrize(
    ("calls", "known"),
    [
        ("", Arriving("long", "json")),
        ("  - filter: {where: 'true'}\n", Arriving("long", "json")),
        ("  - mapValues: {value: '1'}\n", Arriving("long", None)),
        ("  - selectKey: {key: '1'}\n", Arriving(None, "json")),
        ("  - map: {key: '1', value: '2'}\n", Arriving()),
        ("  - selectKey: {key: '1'}\n  - repartition: {serdes: {key: string}}\n", Arriving("string", "json")),
        ("  - groupByKey:\n  - count:\n  - toStream:\n", Arriving("long", "long")),
        (
            "  - groupByKey:\n  - windowedBy: {tumbling: {size: 1h}}\n  - count:\n  - toStream:\n",
            Arriving(None, "long"),
        ),
        ("  - merge: {with: same}\n", Arriving("long", "json")),
        ("  - merge: {with: other}\n", Arriving("long", None)),
    ],
)
def test_what_comes(calls: str, known: Arriving) -> None:
    read = "  - stream: {topic: a, as: a, serdes: {key: long, value: json}}\n"
    same = "  - stream: {topic: b, as: same, serdes: {key: long, value: json}}\n"
    other = "  - stream: {topic: c, as: other, serdes: {key: long, value: string}}\n"
    assert at_last(f"{same}{other}{read}{calls}") == known


def test_what_nobody_told_is_the_default() -> None:
    assert at_last("  - stream: {topic: a}\n") == Arriving("string", "double")
