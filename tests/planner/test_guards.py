"""Limits of a run: replication factors, one application per topic."""

import attrs
import pytest

from headwater.model.cluster_profiles import PROFILES
from headwater.model.problems import ProblemCode, Severity, errors
from headwater.model.topology import Sink
from tests.planner.simulated_cluster import (
    SimulatedCluster,
    application,
    changelog,
    repartition,
)


def test_more_replicas_than_brokers_that_answer_are_a_warning() -> None:
    """The brokers count those that are registered, too: one may be restarting."""
    topic = repartition("orders-a-repartition", 4, replication_factor=4)
    plan = SimulatedCluster().plan(application(topics=[topic]))
    (problem,) = plan.problems
    assert (problem.code, problem.severity) == (ProblemCode.REPLICATION_FACTOR, Severity.WARNING)
    assert (problem.expected, problem.found) == ("4 brokers that answer", "3 brokers")
    assert plan.is_applicable


def test_topics_to_be_created_with_the_same_replicas_are_one_warning() -> None:
    topics = [repartition(f"orders-{name}-repartition", 4, replication_factor=4) for name in "abc"]
    plan = SimulatedCluster(brokers=3, default_min_insync_replicas=5).plan(application(topics=topics))
    many, weak = plan.problems
    assert many.summary == "3 topics of orders require 4 replicas, and only 3 brokers answer."
    assert weak.summary == "3 topics of orders would have 4 replicas, fewer than min.insync.replicas."
    for problem in (many, weak):
        assert all(topic.name in (problem.found or "") for topic in topics)
        assert problem.topic is None


def test_the_default_of_the_brokers_is_used_without_a_replication_factor() -> None:
    assert (
        SimulatedCluster(brokers=2).plan(application(stateful=False)).problems[0].code
        is ProblemCode.REPLICATION_FACTOR
    )
    (action,) = SimulatedCluster().plan(application(stateful=False)).actions
    assert action.replication_factor == 3


def test_fewer_replicas_than_min_insync_replicas_are_a_warning() -> None:
    """The brokers accept writes: they require no more replicas than there are."""
    topic = repartition("orders-a-repartition", 4, replication_factor=1)
    cluster = SimulatedCluster.set_up(application(topics=[topic]))
    cluster.default_min_insync_replicas = 2
    for each in (cluster, SimulatedCluster(default_min_insync_replicas=2)):
        (warning,) = each.plan(application(topics=[topic])).problems
        assert (warning.code, warning.severity) == (ProblemCode.REPLICATION_FACTOR, Severity.WARNING)


def test_the_min_insync_replicas_of_the_topic_are_used() -> None:
    topic = repartition("orders-a-repartition", 4, replication_factor=2)
    topic = attrs.evolve(topic, config={**topic.config, "min.insync.replicas": "3"})
    (problem,) = SimulatedCluster().plan(application(topics=[topic])).problems
    assert problem.expected == "a replication factor of at least 3 (min.insync.replicas)"


def test_the_min_insync_replicas_of_an_existing_topic_are_those_on_the_cluster() -> None:
    topic = repartition("orders-a-repartition", 4, replication_factor=2)
    cluster = SimulatedCluster.set_up(application(topics=[topic]))
    cluster.configure(topic.name, min_insync_replicas="3")
    assert ProblemCode.REPLICATION_FACTOR in [
        problem.code for problem in cluster.plan(application(topics=[topic])).problems
    ]


def test_without_a_known_default_one_replica_is_enough() -> None:
    topic = repartition("orders-a-repartition", 4, replication_factor=1)
    cluster = SimulatedCluster(default_min_insync_replicas=None)
    assert not cluster.plan(application(topics=[topic])).problems


def test_the_replication_factor_of_an_existing_topic_is_not_changed() -> None:
    cluster = SimulatedCluster.set_up(application(stateful=False))
    cluster.change("orders-step1-repartition", replication_factor=2)
    plan = cluster.plan(application(stateful=False))
    assert not plan.has_changes
    assert [action.replication_factor for action in plan.actions] == [2]


def test_a_topic_of_two_applications_is_an_error() -> None:
    shared = Sink("shared", 4)
    plan = SimulatedCluster().plan(application(id_="a", sink=shared), application(id_="b", sink=shared))
    (problem,) = plan.problems
    assert (problem.code, problem.topic, problem.found) == (
        ProblemCode.CONFLICTING_PARTITIONS,
        "shared",
        "a, b",
    )


@pytest.mark.parametrize(
    ("live", "declared", "severity"),
    [
        (1, 3, Severity.WARNING),
        (3, 2, Severity.INFO),
        (3, 1, Severity.INFO),
        (3, 3, None),
        (3, None, None),
        (3, -1, None),
    ],
)
def test_a_changed_replication_factor_of_a_sink_is_reported(
    live: int, declared: int | None, severity: Severity | None
) -> None:
    """No run moves replicas, so without a message the change in the document would have no effect at all."""
    cluster = SimulatedCluster.set_up(application(sink=Sink("orders-out", 4, replication_factor=live)))
    plan = cluster.plan(application(sink=Sink("orders-out", 4, replication_factor=declared)))
    assert [(problem.code, problem.topic, problem.severity) for problem in plan.problems] == [
        (ProblemCode.REPLICATION_FACTOR, "orders-out", severity) for _ in range(severity is not None)
    ]


def test_new_topics_of_two_applications_whose_names_collide_are_an_error() -> None:
    first = application(topics=[changelog("orders-eu.sums-changelog", 4)])
    second = application(id_="orders-eu_sums", topics=[changelog("orders-eu_sums-changelog", 4)])
    (problem,) = errors(SimulatedCluster().plan(first, second).problems)
    assert (problem.code, problem.topic) == (ProblemCode.REFUSED_BY_BROKERS, "orders-eu_sums-changelog")
    existing = SimulatedCluster.set_up(first)
    assert existing.plan(first, second).is_applicable, (
        "the brokers compare it with existing topics themselves"
    )


def test_names_that_collide_are_no_error_where_the_brokers_accept_them() -> None:
    topics = [changelog(f"orders-{store}-changelog", 4) for store in ("by.day", "by_day")]
    compiled = application(topics=topics)
    profiled = attrs.evolve(compiled.application, cluster_profile=PROFILES["redpanda"])
    assert SimulatedCluster().plan(attrs.evolve(compiled, application=profiled)).is_applicable
