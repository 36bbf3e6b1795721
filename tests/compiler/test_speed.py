"""Thousands of topics compile in less than a second of CPU time, for every shape."""

import time
from collections.abc import Iterator

import pytest

from headwater.compiler import compile_document
from headwater.compiler.pipeline import compile_nodes
from headwater.describe import read_description, write_description
from headwater.model.nodes import (
    ChangelogKind,
    Node,
    NodeTopology,
    ProcessorNode,
    RepartitionTopic,
    SinkNode,
    SourceNode,
    StateStore,
)
from headwater.model.problems import Location
from headwater.model.topology import Application, DescribedTopology, Protocol, StoreDetail, TopologyDocument

PARTS = 2500
AT = Location("app.yaml")


def step(number: int, *reads: str) -> Iterator[Node]:
    """Yield a sub-topology with a store that writes the repartition topic with its number."""
    yield SourceNode(f"source-{number}", reads)
    yield ProcessorNode(f"process-{number}", (f"source-{number}",), (f"store-{number}",))
    yield SinkNode(f"sink-{number}", (f"process-{number}",), topic=f"{number}-repartition")


def chain() -> Iterator[Node]:
    for number in range(PARTS):
        yield from step(number, f"{number - 1}-repartition" if number else "in")
    yield SourceNode("last", (f"{PARTS - 1}-repartition",))


def chain_with_inputs() -> Iterator[Node]:
    for number in range(PARTS):
        yield from step(number, f"in-{number}", *([f"{number - 1}-repartition"] if number else []))
    yield SourceNode("last", (f"{PARTS - 1}-repartition",))


def fan() -> Iterator[Node]:
    yield SourceNode("source", ("in",))
    for number in range(PARTS):
        yield SinkNode(f"sink-{number}", ("source",), topic=f"{number}-repartition")
        yield SourceNode(f"source-{number}", (f"{number}-repartition",))
        yield ProcessorNode(f"process-{number}", (f"source-{number}",), (f"store-{number}",))


def funnel() -> Iterator[Node]:
    for number in range(PARTS):
        yield SourceNode(f"in-{number}", (f"in-{number}",))
    yield ProcessorNode("merge", tuple(f"in-{number}" for number in range(PARTS)))
    for number in range(PARTS):
        yield SinkNode(f"sink-{number}", ("merge",), topic=f"{number}-repartition")
        yield SourceNode(f"source-{number}", (f"{number}-repartition",))
        yield ProcessorNode(f"process-{number}", (f"source-{number}",), (f"store-{number}",))


SHAPES = {"chain": chain, "chain with inputs": chain_with_inputs, "fan": fan, "funnel": funnel}


def topology(nodes: tuple[Node, ...]) -> NodeTopology:
    numbers = range(PARTS)
    sources = [node.name for node in nodes if isinstance(node, SourceNode)]
    return NodeTopology(
        nodes,
        tuple(StateStore(f"store-{number}", ChangelogKind.KEY_VALUE) for number in numbers),
        repartition_topics=tuple(RepartitionTopic(f"{number}-repartition") for number in numbers),
        copartition_groups=tuple(frozenset({source}) for source in sources),
    )


@pytest.mark.parametrize(
    "protocol", [Protocol.CLASSIC, pytest.param(Protocol.STREAMS, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES.keys())
def test_five_thousand_internal_topics(shape: type, protocol: Protocol) -> None:
    built = topology(tuple(shape()))
    document = TopologyDocument(Application("app", AT, protocol))
    partitions = {"in": 3} | {f"in-{number}": 1 + number % 7 for number in range(PARTS)}
    started = time.process_time()
    application = compile_nodes(document, built, partitions)
    assert time.process_time() - started < 1
    assert len(application.internal_topics) == 2 * PARTS


def test_a_text_of_a_thousand_subtopologies() -> None:
    nodes: list[Node] = []
    for number in range(1000):
        nodes += step(number, f"{number - 1}-repartition" if number else "in")
    text = write_description(NodeTopology(tuple(nodes)))
    started = time.process_time()
    read, problems = read_description(text)
    details = {f"store-{number}": StoreDetail() for number in range(1000)}
    described = DescribedTopology(read, AT, stores=details)
    application = compile_document(TopologyDocument(Application("app", AT), described=described), {"in": 3})
    assert time.process_time() - started < 2
    assert problems == ()
    assert len(application.subtopologies) == 1000
    assert len(application.internal_topics) == 1999
