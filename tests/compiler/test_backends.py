"""The choice between Spark SQL and tasks for a sub-topology."""

import pytest

from headwater.compiler import compile_document
from headwater.model.compiled import Backend
from headwater.spec import load_text

_CHAIN = """
  - stream: {topic: in, serdes: {key: string, value: string}}
  - filter: {where: "value is not null"}
  - mapValues: {value: "upper(value)"}
  - to: {topic: out}
"""


def backends(topology: str, config: str = "{}") -> list[Backend]:
    loaded = load_text(f"application: {{id: a, config: {config}}}\ntopology:{topology}", "test.yaml")
    assert not loaded.problems, loaded.problems
    return [part.backend for part in compile_document(loaded.documents[0], {"in": 1, "out": 1}).subtopologies]


def test_a_chain_of_expressions_over_strings_is_native() -> None:
    assert backends(_CHAIN) == [Backend.NATIVE]
    assert backends(_CHAIN, "{processing.guarantee: exactly_once_v2}") == [Backend.NATIVE]


def test_a_chain_to_a_repartition_topic_is_native_and_the_count_is_not() -> None:
    topology = """
  - stream: {topic: in, serdes: {key: string, value: string}}
  - selectKey: {key: value}
  - groupByKey:
  - count:
  - toStream:
  - to: {topic: out}
"""
    assert backends(topology) == [Backend.NATIVE, Backend.TASKS]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value: string}", "value: long}"),
        ("to: {topic: out}", "to: {topic: out, serdes: {value: json}}"),
        ('"upper(value)"', '"concat(value, size(headers))"'),
        ('"upper(value)"', '"double(value) * 1.1"'),
        ('"upper(value)"', '"length(value)"'),
        ('"value is not null"', '"value"'),
        ("to: {topic: out}", "to: {topic: out, serdes: {value: bytes}}"),
        ('value: "upper(value)"', "name: later"),
        ("  - to: ", "  - process: {class: 'm:C'}\n  - to: "),
        ("serdes: {key: string", "timestamp: 'timestamp + 1', serdes: {key: string"),
        ("  - to: {topic: out}", "  - to: {topic: out}\n  - to: {topic: in2, from: s}"),
    ],
)
def test_other_subtopologies_run_as_tasks(old: str, new: str) -> None:
    topology = _CHAIN.replace(old, new)
    assert topology != _CHAIN
    if "from: s" in new:
        topology = topology.replace("stream: {topic: in,", "stream: {topic: in, as: s,")
    assert backends(topology) == [Backend.TASKS]


@pytest.mark.parametrize(
    "config",
    [
        "{default.value.serde: long}",
        "{processing.exception.handler: LogAndContinueProcessingExceptionHandler}",
        "{static.partitioner.class: initial-hash, static.partitioner.initial.partitions: 1}",
    ],
)
def test_settings_that_the_native_back_end_does_not_support(config: str) -> None:
    assert backends(_CHAIN, config) == [Backend.TASKS]
