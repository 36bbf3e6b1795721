"""Limits of names, counts and changes: what violates them."""

import attrs
import pytest

from headwater.compiler.java import regular_languages
from headwater.model.problems import ProblemCode, errors
from headwater.model.topology import Lifecycle
from headwater.planner import PlanPolicy
from headwater.planner.policies import check_application, declared_subject
from tests.planner.simulated_cluster import (
    AUTOSCALING,
    SimulatedCluster,
    application,
    limits,
)
from tests.policies.policy_cases import planned, policies, shop


def delete_topics(cluster: SimulatedCluster, *names: str) -> SimulatedCluster:
    for name in names:
        del cluster.topics[name]
    return cluster


def test_re_created_topics_are_limited() -> None:
    cluster = delete_topics(
        SimulatedCluster.set_up(shop()), "orders-counts-changelog", "orders-Hourly-changelog"
    )
    (problem,) = errors(planned("blastRadius: {recreatedTopics: 1}", cluster).problems)
    assert (problem.code, problem.found) == (ProblemCode.BLAST_RADIUS, "2 topics re-created after a loss")


def test_deletions_of_a_retired_application_are_limited() -> None:
    cluster = SimulatedCluster.set_up(shop())
    retired = attrs.evolve(shop(), application=attrs.evolve(shop().application, lifecycle=Lifecycle.RETIRED))
    cluster.up(retired)
    limited = PlanPolicy(policies=policies("blastRadius: {deletedTopics: 3}"))
    (problem,) = cluster.plan(policy=limited).problems
    assert (problem.code, problem.found) == (ProblemCode.BLAST_RADIUS, "4 deleted topics")
    assert cluster.plan(policy=PlanPolicy(policies=policies("blastRadius: {deletedTopics: 4}"))).is_applicable


def test_settings_that_remove_records_are_limited() -> None:
    cluster = SimulatedCluster.set_up(shop())
    cluster.configure("orders-Hourly-changelog", retention_ms="999999999999")
    (problem,) = errors(planned("blastRadius: {removingSettings: 0}", cluster).problems)
    assert (problem.code, problem.found) == (
        ProblemCode.BLAST_RADIUS,
        "1 topic with settings that remove records",
    )
    assert not errors(planned("blastRadius: {removingSettings: 1}", cluster).problems)


@pytest.mark.parametrize(("limit", "is_advised"), [(0, False), (1, True)])
def test_one_application_after_another_is_advised_only_if_the_limit_allows_any_change(
    limit: int,
    is_advised: bool,  # noqa: FBT001 - a parameter
) -> None:
    cluster = delete_topics(
        SimulatedCluster.set_up(shop()), "orders-counts-changelog", "orders-Hourly-changelog"
    )
    (problem,) = errors(planned(f"blastRadius: {{recreatedTopics: {limit}}}", cluster).problems)
    assert ("one after another" in problem.fix) is is_advised


@pytest.mark.timeout(20)
@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", "(a*)*b", "(.*a){12}", "([a-z]+)*[0-9]"])
def test_patterns_with_nested_repetitions_are_matched_in_linear_time(pattern: str) -> None:
    compiled = application(id_="a" * 200, topics=[])
    text = f'applicationId: {{pattern: "{pattern}", applications: "{pattern}|.*"}}'
    assert len(list(check_application(declared_subject(compiled), policies(text)))) <= 1


def test_a_pattern_that_needs_too_much_memory_matches_no_name_and_exempts_no_application(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pattern = "(.*b.{60})*(.*c.{50})*"
    loaded = policies(f"applicationId: {{pattern: '{pattern}'}}") + policies(
        f"applicationId: {{pattern: x, applications: '{pattern}'}}"
    )
    monkeypatch.setattr(regular_languages, "_MOST_EXPRESSIONS", 20)
    violations = check_application(declared_subject(application(id_="cbbccbcbb", topics=[])), loaded)
    assert len(list(violations)) == 2


@pytest.mark.parametrize(
    ("policy", "refused"),
    [
        (limits(createdTopics=2, addedPartitions=8), False),
        (limits(createdTopics=1), True),
        (limits(addedPartitions=7), True),
    ],
)
def test_a_run_creates_at_most_the_allowed_topics_and_partitions(
    policy: PlanPolicy, *, refused: bool
) -> None:
    plan = SimulatedCluster().plan(application(), policy=policy)
    assert [problem.code for problem in plan.problems] == [ProblemCode.BLAST_RADIUS] * refused


def test_a_run_adds_at_most_the_allowed_partitions() -> None:
    cluster = SimulatedCluster.set_up(application(config=AUTOSCALING))
    expanded = application(config=AUTOSCALING, sources={"orders-in": 10})
    assert cluster.plan(expanded, policy=limits(createdTopics=0, addedPartitions=12)).is_applicable
    (problem,) = cluster.plan(expanded, policy=limits(addedPartitions=11)).problems
    assert problem.found == "12 new partitions"
