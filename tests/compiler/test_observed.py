"""Observed applications: exactly the topics of the document, and what it leaves open."""

import attrs
import pytest

from headwater.compiler.observed import compile_observed, default_config
from headwater.model.compiled import CompiledApplication
from headwater.model.nodes import TopicKind
from headwater.model.problems import Location, ProblemCode, Severity
from headwater.model.topology import (
    Application,
    ObservedTopic,
    ObservedTopology,
    Sink,
    TopologyDocument,
    Unknown,
)

AT = Location("app.yaml", 3, 5)
TOPICS = (
    ObservedTopic(name="s-changelog", kind=TopicKind.CHANGELOG, partitions=4),
    ObservedTopic(
        name="by-repartition",
        kind=TopicKind.REPARTITION,
        partitions=6,
        config={"retention.ms": "1", "cleanup.policy": "x"},
    ),
)
OBSERVED = ObservedTopology(topics=TOPICS, at=AT, sources={"in": 4})


def observed(
    partitions: dict[str, int],
    config: dict[str, str] | None = None,
    unknown: tuple[Unknown, ...] = (),
    sinks: tuple[Sink, ...] = (),
) -> CompiledApplication:
    topology = attrs.evolve(OBSERVED, unknown=dict.fromkeys(unknown, AT))
    application = Application("app", AT, config=config or {})
    document = TopologyDocument(application, observed=topology, sinks=sinks)
    return compile_observed(document, partitions)


def test_topics_are_as_observed_sorted_by_name() -> None:
    by, store = observed({"in": 4}).internal_topics
    assert (by.name, by.partitions, by.config) == (
        "app-by-repartition",
        6,
        {"cleanup.policy": "x", "retention.ms": "1"},
    )
    assert (store.name, store.node, store.config) == (
        "app-s-changelog",
        "s",
        default_config(TopicKind.CHANGELOG),
    )
    assert by.pinned
    assert store.pinned


@pytest.mark.parametrize(
    ("partitions", "codes"),
    [
        ({}, []),
        ({"in": 4}, []),
        ({"in": 8}, [ProblemCode.UNDECIDABLE_PARTITIONS]),
        ({"other": 1}, [ProblemCode.MISSING_SOURCE_TOPIC]),
    ],
    ids=["not read", "unchanged", "expanded", "deleted"],
)
def test_source_topics_are_compared_with_the_observed_counts(
    partitions: dict[str, int], codes: list[ProblemCode]
) -> None:
    assert [problem.code for problem in observed(partitions).problems] == codes


@pytest.mark.parametrize("autoscaling", ["true", "false"])
def test_an_unknown_topology_is_a_warning_only_where_topics_should_grow(autoscaling: str) -> None:
    config = {"partition.autoscaling.enabled": autoscaling}
    (problem,) = (
        each
        for each in observed({}, config, (Unknown.SUBTOPOLOGIES,)).problems
        if each.code is ProblemCode.MISSING_DETAIL
    )
    assert problem.severity is (Severity.WARNING if autoscaling == "true" else Severity.INFO)


def test_each_open_question_is_one_hint() -> None:
    found = observed({}, unknown=tuple(Unknown)).problems
    assert [(problem.code, problem.severity) for problem in found] == [
        (ProblemCode.MISSING_DETAIL, Severity.INFO)
    ] * len(Unknown)


def test_settings_and_counts_that_need_a_topology_are_reported() -> None:
    config = {"topic.segment.bytes": "1048576", "replication.factor": "3", "num.stream.threads": "2"}
    found = observed({}, config, sinks=(Sink("out", None), Sink("fixed", 3))).problems
    assert [(problem.code, problem.found) for problem in found] == [
        (ProblemCode.CONFIG_HAS_NO_EFFECT, "replication.factor in `application.config`"),
        (ProblemCode.CONFIG_HAS_NO_EFFECT, "topic.segment.bytes in `application.config`"),
        (ProblemCode.UNDECIDABLE_PARTITIONS, "follow"),
    ]
