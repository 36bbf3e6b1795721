"""Each rule: what complies with it, what violates it, and the complete text of the problem."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.policies import check_application, declared_subject
from headwater.report import problems_text
from tests.planner.simulated_cluster import SimulatedCluster, application, changelog
from tests.policies.policy_cases import planned, policies, shop

GOLDEN = Path(__file__).parent / "golden"
POLICY = ProblemCode.POLICY_VIOLATED
VIOLATED = {
    "application-id": 'applicationId: {pattern: "shop-[a-z]+", message: Quotas are set by this prefix.}',
    "store-name": 'storeName: {pattern: "[a-z]+"}',
    "repartition-name": 'repartitionName: {pattern: "to-.*", severity: warning}',
    "managed-topic-name": 'managedTopicName: {pattern: "shop[.].*"}',
    "topic-partitions-many": "topicPartitions: {max: 3, kinds: [repartition]}",
    "topic-partitions-few": "topicPartitions: {min: 6, kinds: [managed]}",
    "application-partitions": "applicationPartitions: {max: 19}",
    "replication-factor": "replicationFactor: {min: 4, max: 5, kinds: [repartition, managed]}",
    "min-insync-replicas": "minInsyncReplicas: {min: 3}",
    "retention-long": "retention: {max: 12h}",
    "retention-short": "retention: {min: 2d, kinds: [changelog, managed]}",
    "config-missing": "topicConfig: {require: {compression.type: lz4, segment.ms: null}, kinds: [managed]}",
    "config-forbidden": "topicConfig: {forbid: [min.insync.replicas, segment.bytes, cleanup.policy]}",
    "named-resources": "namedResources:",
    "blast-radius": "blastRadius: {createdTopics: 4, addedPartitions: 19}",
}
SATISFIED = (
    'applicationId: {pattern: "[a-z]+(-[a-z]+)*"}',
    'applicationId: {pattern: "shop-[a-z]+", applications: "shop.*"}',
    'storeName: {pattern: "counts|Hourly|Lookups"}',
    'repartitionName: {pattern: "by-.*"}',
    'managedTopicName: {pattern: "totals"}',
    "topicPartitions: {min: 4, max: 4}",
    "applicationPartitions: {min: 1, max: 20}",
    "applicationPartitions: {max: 12, kinds: [changelog]}",
    "replicationFactor: {min: 3, max: 3}",
    "minInsyncReplicas: {max: 2}",
    "retention: {min: 1d, max: 30d, kinds: [changelog, managed]}",
    "topicConfig: {require: {cleanup.policy: delete}, kinds: [repartition]}",
    "topicConfig: {forbid: [segment.bytes, cleanup.policy, message.timestamp.type], kinds: [repartition]}",
    'namedResources: {applications: "other"}',
    "blastRadius: {createdTopics: 5, addedPartitions: 20, recreatedTopics: 0, deletedTopics: 0}",
    'blastRadius: {createdTopics: 0, applications: "other"}',
)


@pytest.mark.parametrize("name", VIOLATED)
def test_violations_are_reported(name: str, golden: Callable[[Path, str], None]) -> None:
    plan = planned(VIOLATED[name])
    assert plan.problems
    severity = Severity.WARNING if "severity: warning" in VIOLATED[name] else Severity.ERROR
    assert {problem.severity for problem in plan.problems} == {severity}
    assert plan.is_applicable is (severity is Severity.WARNING)
    golden(GOLDEN / f"{name}.txt", problems_text(plan.problems) + "\n")


@pytest.mark.parametrize("text", SATISFIED)
def test_policies_that_are_satisfied_yield_no_problems(text: str) -> None:
    assert planned(text).problems == ()


def test_an_existing_topic_is_checked_as_it_is_after_the_run() -> None:
    cluster = SimulatedCluster.set_up(shop())
    cluster.change("orders-by-customer-repartition", replication_factor=1)
    cluster.configure("orders-counts-changelog", min_insync_replicas="1")
    cluster.configure("orders-Hourly-changelog", min_insync_replicas="2")
    text = "replicationFactor: {min: 3}\n  - minInsyncReplicas: {min: 2, kinds: [changelog]}"
    violations = [problem for problem in planned(text, cluster).problems if problem.code is POLICY]
    assert [(problem.topic, problem.found) for problem in violations] == [
        ("orders-by-customer-repartition", "1"),
        ("orders-counts-changelog", "1"),
        ("orders-KSTREAM-REDUCE-STATE-STORE-0000000007-changelog", "1, the default of the brokers"),
    ]


def test_existing_topics_that_violate_a_policy_are_one_warning() -> None:
    text = "topicPartitions: {max: 3, severity: warning}"
    new = planned(text).problems
    assert len(new) == 5
    [warning] = planned(text, SimulatedCluster.set_up(shop())).problems
    assert warning.summary == "5 existing topics of orders do not follow the policy topicPartitions."
    assert all((each.topic or "?") in (warning.found or "") for each in new)
    assert (warning.topic, warning.fix, warning.expected) == (None, new[0].fix, new[0].expected)

    cluster = SimulatedCluster.set_up(shop())
    del cluster.topics["orders-counts-changelog"]
    violated = [problem for problem in planned(text, cluster).problems if problem.code is POLICY]
    missing, existing = sorted(violated, key=lambda problem: problem.topic is None)
    assert missing.topic == "orders-counts-changelog"
    assert existing.summary.startswith("4 existing topics")
    assert len(planned(text.replace("warning", "error"), SimulatedCluster.set_up(shop())).problems) == 5


def test_defaults_of_the_brokers_are_used_in_a_plan() -> None:
    cluster = SimulatedCluster(default_min_insync_replicas=1, topic_defaults={"retention.ms": "604800000"})
    text = "minInsyncReplicas: {min: 2, kinds: [repartition]}"
    assert [problem.found for problem in planned(text, cluster).problems] == ["1, the default of the brokers"]


def offline(text: str, *, counts_are_known: bool = False) -> list[Problem]:
    return list(
        check_application(declared_subject(shop(), counts_are_known=counts_are_known), policies(text))
    )


@pytest.mark.parametrize(
    "text",
    [
        "topicPartitions: {max: 1}",
        "applicationPartitions: {max: 1}",
        "replicationFactor: {min: 9, kinds: [changelog]}",
        "minInsyncReplicas: {min: 9, kinds: [changelog]}",
        "topicConfig: {require: {compression.type: lz4}}",
        "blastRadius: {createdTopics: 0}",
    ],
)
def test_rules_that_need_a_cluster_are_not_checked_offline(text: str) -> None:
    assert offline(text) == []


def test_declared_values_are_checked_offline() -> None:
    assert [problem.found for problem in offline("topicPartitions: {max: 3}", counts_are_known=True)] == [
        "4"
    ] * 5
    assert [problem.topic for problem in offline("replicationFactor: {min: 4}")] == ["totals"]
    assert len(offline('storeName: {pattern: "[a-z]+"}')) == 2


def test_five_thousand_topics_are_checked() -> None:
    topics = [changelog(f"orders-s{number}-changelog", 4) for number in range(5_000)]
    compiled = application(topics=topics)
    text = 'storeName: {pattern: "orders-s[0-9]+|orders-counts"}\n  - topicPartitions: {max: 4}'
    assert list(check_application(declared_subject(compiled), policies(text))) == []


def test_an_application_without_sub_topologies_is_checked() -> None:
    """An observed application has no sub-topologies."""
    observed = attrs.evolve(shop(), subtopologies=(), is_observed=True)
    violations = check_application(declared_subject(observed), policies('storeName: {pattern: "[a-z]+"}'))
    assert [problem.node for problem in violations] == ["Hourly"]
