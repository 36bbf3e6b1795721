"""Broker defaults that harm internal topics, which do not set these settings themselves."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.cluster_profiles import PROFILES
from headwater.model.nodes import ChangelogKind
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.drift import FindingKind, find_drift
from tests.planner.simulated_cluster import (
    BOTH,
    CHANGELOG,
    REPARTITION,
    SimulatedCluster,
    application,
    changelog,
    repartition,
)

NO_LIMIT = str(2**63 - 1)


def harmed(
    defaults: Mapping[str, str], config: Mapping[str, str] | None = None
) -> dict[str | None, tuple[str, ...]]:
    """Return setting → the internal topics that the plan names."""
    cluster = SimulatedCluster.set_up(application(config=config))
    cluster.topic_defaults = dict(defaults)
    return {
        (problem.expected or "").split(" ")[0]: topics_of(problem)
        for problem in cluster.plan(application(config=config)).problems
    }


def topics_of(problem: Problem) -> tuple[str, ...]:
    assert (problem.code, problem.severity) == (ProblemCode.MISCONFIGURED_INTERNAL_TOPIC, Severity.WARNING)
    return tuple((problem.found or "").rpartition("applies to ")[2].split(", "))


@pytest.mark.parametrize(
    ("key", "value", "topics"),
    [
        ("retention.bytes", "1000", (REPARTITION,)),
        ("retention.bytes", "0", (REPARTITION,)),
        ("message.timestamp.before.max.ms", "86400000", (CHANGELOG, REPARTITION)),
        ("max.message.bytes", "200000", (CHANGELOG, REPARTITION)),
    ],
)
def test_a_harmful_default_names_the_topics_that_have_it(
    key: str, value: str, topics: tuple[str, ...]
) -> None:
    assert harmed({key: value}) == {key: topics}


@pytest.mark.parametrize(
    "defaults",
    [
        {},
        {"retention.bytes": "-1"},
        {"retention.bytes": "unknown"},
        {"message.timestamp.before.max.ms": NO_LIMIT},
        {"max.message.bytes": "1048588"},
        {"max.message.bytes": "1048576"},
        {"unclean.leader.election.enable": "false"},
        {"unclean.leader.election.enable": "true"},  # only `headwater doctor` reports it
        {"compression.type": "zstd", "retention.ms": "1", "cleanup.policy": "compact"},
    ],
)
def test_other_defaults_are_not_reported(defaults: Mapping[str, str]) -> None:
    assert harmed(defaults) == {}


@pytest.mark.parametrize("key", ["max.request.size", "producer.max.request.size"])
def test_the_largest_message_depends_on_the_producers_of_the_application(key: str) -> None:
    default = {"max.message.bytes": "1048588"}
    assert harmed(default, {key: "1048588"}) == {}
    assert list(harmed(default, {key: "1048589"})) == ["max.message.bytes"]


def test_the_first_plan_warns_before_the_topics_are_created() -> None:
    cluster = SimulatedCluster(topic_defaults={"retention.bytes": "1000"})
    (problem,) = cluster.plan(application()).problems
    assert topics_of(problem) == (REPARTITION,)


def test_windowed_changelogs_lose_state_and_compacted_ones_do_not() -> None:
    topics = (
        repartition(REPARTITION, 4),
        changelog("orders-windows-changelog", 4, ChangelogKind.WINDOWED),
        changelog("orders-versions-changelog", 4, ChangelogKind.VERSIONED),
    )
    cluster = SimulatedCluster(topic_defaults={"retention.bytes": "1000"})
    (problem,) = cluster.plan(application(topics=topics)).problems
    assert topics_of(problem) == (REPARTITION, "orders-windows-changelog")


@BOTH
def test_a_declared_value_is_not_reported_even_if_it_is_the_default(mode: Mapping[str, str]) -> None:
    declared = attrs.evolve(
        repartition(REPARTITION, 4), config={**repartition(REPARTITION, 4).config, "retention.bytes": "1000"}
    )
    compiled = application(config=mode, topics=[declared])
    cluster = SimulatedCluster.set_up(compiled)
    cluster.topic_defaults = {"retention.bytes": "1000"}
    assert cluster.plan(compiled).problems == ()
    undeclared = cluster.topics[REPARTITION].config
    cluster.change(REPARTITION, config={k: v for k, v in undeclared.items() if k != "retention.bytes"})
    assert cluster.plan(compiled).problems == ()


def test_a_setting_that_the_cluster_refuses_is_not_reported() -> None:
    compiled = application()
    serverless = attrs.evolve(
        compiled, application=attrs.evolve(compiled.application, cluster_profile=PROFILES["msk-serverless"])
    )
    cluster = SimulatedCluster(topic_defaults={"message.timestamp.before.max.ms": "1000"})
    assert cluster.plan(compiled).problems
    assert not cluster.plan(serverless).problems
    single = SimulatedCluster.set_up(serverless)
    single.configure(CHANGELOG, message_timestamp_before_max_ms="1000")
    assert not single.plan(serverless).problems


def test_drift_reports_the_default_once() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.topic_defaults = {"message.timestamp.before.max.ms": "86400000"}
    (finding,) = find_drift([application()], cluster.snapshot, cluster.records).findings
    assert (finding.kind, finding.severity, finding.topic) == (FindingKind.CONFIG, Severity.WARNING, None)
    assert CHANGELOG in finding.found
    assert REPARTITION in finding.found


def test_a_setting_without_effect_on_the_topic_may_be_removed() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.topic_defaults = {"retention.bytes": "1000"}
    for name in (CHANGELOG, REPARTITION):
        cluster.change(name, config={**cluster.topics[name].config, "retention.bytes": "-1"})
    found = find_drift([application()], cluster.snapshot, cluster.records).findings
    fixes = {finding.topic: finding.fix for finding in found}
    assert "or remove it" in fixes[CHANGELOG]
    assert "Do not remove it" in fixes[REPARTITION]


HARMFUL = [
    ("max.message.bytes", "1000"),
    ("message.timestamp.before.max.ms", "86400000"),
    ("unclean.leader.election.enable", "true"),
]


@BOTH
@pytest.mark.parametrize(("key", "value"), HARMFUL)
def test_a_harmful_setting_of_a_single_topic_is_reported_once(
    mode: Mapping[str, str], key: str, value: str
) -> None:
    cluster = SimulatedCluster.set_up(application(config=mode))
    cluster.change(CHANGELOG, config={**cluster.topics[CHANGELOG].config, key: value})
    (problem,) = cluster.plan(application(config=mode)).problems
    assert (problem.code, problem.severity) == (ProblemCode.MISCONFIGURED_INTERNAL_TOPIC, Severity.WARNING)
    assert (problem.topic, (problem.found or "").startswith(f"{key} {value},")) == (CHANGELOG, True)
    (finding,) = find_drift([application(config=mode)], cluster.snapshot, cluster.records).findings
    assert (finding.topic, finding.why) == (CHANGELOG, problem.why)
    topics = [
        attrs.evolve(topic, config={**topic.config, key: value}) if topic.name == CHANGELOG else topic
        for topic in application().internal_topics
    ]
    assert cluster.plan(application(config=mode, topics=topics)).problems == ()


def test_a_setting_that_kafka_streams_requires_is_reported_by_its_own_rule() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.change(REPARTITION, config={**cluster.topics[REPARTITION].config, "retention.bytes": "1000"})
    (problem,) = cluster.plan(application()).problems
    assert "endangers" in problem.summary


def test_the_fix_of_a_harmful_setting_does_not_lead_to_a_harmful_default() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.change(CHANGELOG, config={**cluster.topics[CHANGELOG].config, "max.message.bytes": "1000"})
    fixes = {}
    for default in ("1048588", "2000"):
        cluster.topic_defaults = {"max.message.bytes": default}
        fixes[default] = next(
            problem.fix for problem in cluster.plan(application()).problems if problem.topic == CHANGELOG
        )
    assert "--delete-config max.message.bytes`" in fixes["1048588"]
    assert "--add-config max.message.bytes=1048588`" in fixes["2000"]
