"""Expansions that policies forbid: the agent does not make them, and reports the policy."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from headwater.agent.decide.assessment import Assessment, assess_application
from headwater.agent.state import Phase
from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.compiler import compile_documents
from headwater.model.problems import AGENT, ProblemCode, Severity
from headwater.toolchain.broker.local import LocalBroker
from tests.agent.live_documents import unique_documents
from tests.agent.running import await_counts, await_true, make_topics, running, settings
from tests.agent.simulation import CHANGELOG, ORDERS, REPARTITION, documents, leading_agent
from tests.policies.policy_cases import policies
from tests.pulumi.cluster import Cluster

BEFORE = {"orders": 4, "returns": 4, REPARTITION: 4, CHANGELOG: 4, "totals": 4}
SETTLED = {REPARTITION: 4, CHANGELOG: 4, "totals": 4}


def assessed(text: str, orders: int = 8, document: str = ORDERS, changelog: int = 4) -> Assessment:
    live = BEFORE | {"orders": orders, CHANGELOG: changelog}
    [compiled] = compile_documents(documents(document), live, AGENT)
    return assess_application(compiled, live, SETTLED, policies=policies(text))


@pytest.mark.parametrize(
    ("text", "code", "topic"),
    [
        ("topicPartitions: {max: 6, kinds: [changelog]}", ProblemCode.POLICY_VIOLATED, CHANGELOG),
        ("topicPartitions: {max: 6, kinds: [managed]}", ProblemCode.POLICY_VIOLATED, "totals"),
        ("applicationPartitions: {max: 23}", ProblemCode.POLICY_VIOLATED, None),
        ("blastRadius: {addedPartitions: 11}", ProblemCode.BLAST_RADIUS, None),
        (
            'topicPartitions: {max: 6, kinds: [changelog], applications: "totals-.*"}',
            ProblemCode.POLICY_VIOLATED,
            CHANGELOG,
        ),
    ],
)
def test_a_forbidden_expansion_is_refused(text: str, code: ProblemCode, topic: str | None) -> None:
    found = assessed(text)
    assert [(each.code, each.topic) for each in found.refusals] == [(code, topic)]
    assert all("start them again with the changed file" in each.fix for each in found.refusals)
    assert not found.is_expandable
    assert assessed(text, orders=4).refusals == ()


@pytest.mark.parametrize(
    "text",
    [
        "topicPartitions: {max: 8}",
        "applicationPartitions: {max: 24}",
        "blastRadius: {addedPartitions: 12, createdTopics: 0}",
        'topicPartitions: {max: 6, applications: "other"}',
        'blastRadius: {addedPartitions: 1, applications: "other"}',
        'applicationId: {pattern: "x"}',
        "retention: {max: 1d}",
        "replicationFactor: {min: 3}",
    ],
)
def test_an_expansion_that_is_allowed_is_made_whatever_other_policies_say(text: str) -> None:
    found = assessed(text)
    assert (found.refusals, found.warnings) == ((), ())
    assert found.is_expandable


def test_a_policy_with_the_severity_warning_is_reported_and_does_not_refuse() -> None:
    found = assessed("topicPartitions: {max: 6, kinds: [changelog], severity: warning}")
    assert [each.severity for each in found.warnings] == [Severity.WARNING]
    assert found.is_expandable


def test_a_topic_that_is_not_expanded_is_not_checked() -> None:
    """It violates the policy already: that another topic gets partitions does not change it."""
    assert assessed("topicPartitions: {max: 6, kinds: [changelog]}", changelog=8).refusals == ()


def test_without_autoscaling_the_agent_changes_nothing_so_no_policy_is_reported() -> None:
    off = ORDERS.replace("enabled: true", "enabled: false")
    assert assessed("topicPartitions: {max: 6}", document=off).refusals == ()


def test_the_agent_waits_until_the_policy_allows_the_expansion() -> None:
    simulation = leading_agent(ORDERS)
    allowed = simulation.policy
    simulation.policy = attrs.evolve(allowed, policies=policies("topicPartitions: {max: 6}"))
    simulation.counts["orders"] = 8
    simulation.pass_time(60_000)
    assert simulation.app().phase is Phase.REFUSED
    assert {problem.code for problem in simulation.app().problems} == {ProblemCode.POLICY_VIOLATED}
    assert simulation.counts[CHANGELOG] == 4
    assert not simulation.journal
    simulation.policy = allowed
    simulation.pass_time(60_000)
    assert simulation.counts[CHANGELOG] == 8


def test_a_policy_file_with_errors_is_one_problem(tmp_path: Path) -> None:
    (tmp_path / "app.yaml").write_text(ORDERS)
    (tmp_path / "policies.yaml").write_text("policies:\n  - topicPartition: {max: 6}\n")
    arguments = ["agent", "run", str(tmp_path / "app.yaml"), "--bootstrap-server", "localhost:1"]
    done = CliRunner().invoke(main, [*arguments, "--policies", str(tmp_path / "policies.yaml")])
    assert done.exit_code == ExitCode.PROBLEMS
    assert "policies.yaml:2" in done.stderr


@pytest.mark.broker
def test_on_a_broker_no_topic_is_expanded_beyond_the_policy(
    kafka: LocalBroker, unique: Callable[[str], str]
) -> None:
    group = unique("group")
    declared = unique_documents(group)
    cluster = Cluster(kafka.bootstrap_servers)
    sources = {f"orders-{group}": 3, f"returns-{group}": 3}
    make_topics(cluster, declared, sources)
    limited = attrs.evolve(
        settings(kafka.bootstrap_servers, declared, group), policies=policies("topicPartitions: {max: 4}")
    )
    with running(limited) as recorder:
        await_true(lambda: recorder.state.is_recovered)
        cluster.expand(f"orders-{group}", 4)
        sources |= {f"orders-{group}": 4}
        await_counts(cluster, declared, sources)
        cluster.expand(f"orders-{group}", 5)
        await_true(
            lambda: any(
                problem.code is ProblemCode.POLICY_VIOLATED
                for application in recorder.state.applications.values()
                for problem in application.problems
            )
        )
        assert cluster.partitions(f"totals-app-{group}-counts-changelog") == 4
