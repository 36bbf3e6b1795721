"""Partitions without a leader, or with too few replicas in sync: reported once for all topics."""

import attrs
import pytest

from headwater.model.cluster import RegisteredBroker, RegisteredBrokers
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.drift import FindingKind, find_drift
from tests.planner.simulated_cluster import CHANGELOG, REPARTITION, SimulatedCluster, application


def _problems(cluster: SimulatedCluster) -> list[Problem]:
    found = cluster.plan(application()).problems
    assert {problem.code for problem in found} <= {ProblemCode.UNAVAILABLE_PARTITIONS}
    return list(found)


@pytest.mark.parametrize(
    ("in_sync", "least", "severity", "summary"),
    [
        (3, 2, None, ""),
        (None, 2, None, ""),
        (2, 1, Severity.INFO, "1 topic of orders has replicas that are not in sync."),
        (2, 2, Severity.WARNING, "1 topic of orders has no more replicas in sync than writes require."),
        (1, 2, Severity.WARNING, "1 topic of orders has fewer replicas in sync than writes require."),
    ],
    ids=["all", "not known", "spare", "last", "blocked"],
)
def test_replicas_in_sync_are_compared_with_what_writes_require(
    in_sync: int | None, least: int, severity: Severity | None, summary: str
) -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.default_min_insync_replicas = least
    cluster.change(CHANGELOG, in_sync=in_sync)
    problems = _problems(cluster)
    assert [(each.severity, each.summary) for each in problems] == ([(severity, summary)] if severity else [])
    assert cluster.plan(application()).is_applicable


def test_the_setting_of_the_topic_has_priority() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(CHANGELOG, min_insync_replicas="3")
    cluster.change(CHANGELOG, in_sync=2)
    (problem,) = _problems(cluster)
    assert "fewer replicas in sync than writes require" in problem.summary


def test_a_topic_requires_no_more_replicas_than_it_has() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.configure(CHANGELOG, min_insync_replicas="5")
    cluster.change(CHANGELOG, replication_factor=2, in_sync=1)
    summaries = [problem.summary for problem in cluster.plan(application()).problems]
    assert "1 topic of orders has fewer replicas in sync than writes require." in summaries
    cluster.change(CHANGELOG, in_sync=2)
    codes = {problem.code for problem in cluster.plan(application()).problems}
    assert ProblemCode.UNAVAILABLE_PARTITIONS not in codes


def test_all_topics_are_in_one_problem_and_each_is_in_one() -> None:
    cluster = SimulatedCluster.set_up(application(steps=8))
    cluster.create("orders-in", 4)
    for name in cluster.topics:
        cluster.change(name, in_sync=1)
    cluster.change("orders-in", leaderless=1, in_sync=0)
    leaderless, last = cluster.plan(application(steps=8)).problems
    assert leaderless.summary == "1 partition of topics of orders has no leader."
    assert leaderless.found == "orders-in (1 of 4 partitions)"
    assert last.summary == "9 topics of orders have no more replicas in sync than writes require."
    assert (last.found or "").endswith(" and 4 more")


def _registered(*racks: str) -> RegisteredBrokers:
    return RegisteredBrokers(
        {number: RegisteredBroker(id=number, rack=rack) for number, rack in enumerate(racks, start=1)},
        with_fenced=True,
    )


def test_brokers_that_do_not_answer_are_named_and_those_that_are_not_registered_are_a_problem() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.change(CHANGELOG, in_sync=1, silent=frozenset({3, 7}))
    (short,) = _problems(cluster)
    assert (short.found or "").endswith("(1 of 3 in sync); brokers 3, 7 do not answer")
    cluster.registered = _registered("", "", "")
    _, gone = _problems(cluster)
    assert gone.summary == "1 topic of orders has replicas on brokers that are not registered."
    assert gone.found == f"{CHANGELOG} (broker 7)"
    cluster.registered = attrs.evolve(cluster.registered, with_fenced=False)
    assert len(_problems(cluster)) == 1


@pytest.mark.parametrize(
    ("racks", "own", "severity"),
    [
        (("a", "b", "c"), 3, None),
        (("a", "b", "c"), 2, Severity.INFO),
        (("a", "b", "c"), 1, Severity.WARNING),
        (("a", "b"), 2, None),
        (("a", "a", "a"), 1, None),
        (("a", "b", "c"), None, None),
    ],
)
def test_replicas_on_fewer_racks_than_possible_are_reported(
    racks: tuple[str, ...], own: int | None, severity: Severity | None
) -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.registered = _registered(*racks)
    cluster.change(CHANGELOG, racks=own)
    assert [each.severity for each in _problems(cluster)] == ([severity] if severity else [])
    cluster.change(CHANGELOG, silent=frozenset({2}))  # its rack is not known
    assert not _problems(cluster)


def test_drift_reports_them_about_the_application() -> None:
    cluster = SimulatedCluster.set_up(application())
    cluster.change(REPARTITION, in_sync=1)
    (finding,) = find_drift([application()], cluster.snapshot, cluster.records).findings
    assert (finding.kind, finding.topic, finding.severity) == (
        FindingKind.UNAVAILABLE,
        None,
        Severity.WARNING,
    )
