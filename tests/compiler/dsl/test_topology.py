"""The checks of a topology under construction, call by call."""

from collections.abc import Callable

import pytest

from headwater.compiler.dsl.topology import TopologyUnderConstruction
from headwater.model.nodes import ProcessorNode, RepartitionTopic, SourceNode

Calls = Callable[[TopologyUnderConstruction], object]


def begun() -> TopologyUnderConstruction:
    """Return a topology with the source `a`, the processor `p` and the sink `out`."""
    topology = TopologyUnderConstruction()
    topology.add_source("a", ("a-topic",), None)
    topology.add_processor("p", ("a",), None)
    topology.add_sink("out", ("p",), None, topic="out-topic")
    return topology


@pytest.mark.parametrize(
    ("call", "summary"),
    [
        (lambda t: t.add_processor("p", ("a",), None), "Two nodes are named p."),
        (lambda t: t.add_processor("q", (), None), "q has no parent."),
        (lambda t: t.add_processor("q", ("x",), None), "q has a parent x that is not added before it."),
        (lambda t: t.add_sink("s", ("out",), None, topic="t"), "s has the sink out as a parent."),
        (lambda t: t.add_source("b", (), None), "Source b reads no topic."),
        (
            lambda t: t.add_source("b", ("a-topic",), None),
            "Topic a-topic is read by two sources, a and b.",
        ),
        (
            lambda t: t.add_pattern_source("b", "a-.*", None),
            "Pattern a-.* matches topic a-topic, which another source reads by name.",
        ),
        (
            lambda t: t.connect("out", ("s",), None),
            "out is a source or a sink: no state store can be connected to it.",
        ),
        (
            lambda t: t.connect("p", ("s",), None),
            "Processor p is connected to a store s that is not added before it.",
        ),
    ],
    ids=[
        *("node twice", "no parent", "unknown parent", "sink as parent", "no topic", "topic twice"),
        *("pattern", "store of a sink", "unknown store"),
    ],
)
def test_a_call_that_kafka_streams_refuses_is_one_problem(call: Calls, summary: str) -> None:
    topology = begun()
    call(topology)
    (problem,) = topology.problems
    assert problem.summary == summary


def test_calls_that_fit_have_no_problem() -> None:
    topology = begun()
    topology.add_pattern_source("b", "b-.*", None)
    topology.add_source("c", ("c-topic",), None)
    assert topology.problems == []
    assert [type(node).__name__ for node in topology.nodes()] == [
        *("SourceNode", "ProcessorNode", "SinkNode", "SourceNode", "SourceNode")
    ]
    assert [topology.topics_read(name) for name in ("a", "b", "p", "x")] == [("a-topic",), ("b-.*",), (), ()]


def test_a_refused_node_changes_nothing() -> None:
    topology = begun()
    topology.add_source("p", ("p-topic",), None)
    assert isinstance(topology.nodes()[1], ProcessorNode)
    topology.add_source("b", ("p-topic",), None)
    assert len(topology.problems) == 1
    assert isinstance(topology.nodes()[-1], SourceNode)


def test_a_repartition_topic_has_one_owner() -> None:
    topology = begun()
    first, second = RepartitionTopic("r", partitions=3), RepartitionTopic("r", partitions=4)
    assert topology.add_repartition_topic(first)
    assert topology.add_repartition_topic(first)
    assert topology.problems == []
    assert not topology.add_repartition_topic(second)
    assert len(topology.problems) == 1
    assert topology.repartition_topics == (first,)
