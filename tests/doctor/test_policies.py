"""When the policies of a stack are not checked, doctor gives the reason; without a cluster."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from headwater.cli.doctor import command, pulumi_stack
from headwater.cli.doctor.pulumi_stack import ObservedStack, observe_policies
from headwater.doctor import Finding, Section, Status
from headwater.doctor.stack import PolicyFacts, StackFacts, policy_findings, topic_findings
from headwater.kafka import Connection
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.pulumi.planning import Planned
from headwater.pulumi.settings import stack_settings
from headwater.pulumi.stack_state import StackState

TARGET = Connection(bootstrap_servers=("b:9092",))
DOCUMENT = "application: {id: shop}\ntopology: [{stream: orders}, {to: copies}]\n"
RULES = "policies:\n  - topicPartitions: {max: 9}\n"

Observe = Callable[..., ObservedStack]


@pytest.fixture
def observe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Observe:
    """Return the stack with the texts of a document and of a policy file; planning it fails the test."""

    def refuse(*_: object, **__: object) -> Planned:
        raise AssertionError("planned")

    monkeypatch.setattr(pulumi_stack, "plan_stack", refuse)
    monkeypatch.chdir(tmp_path)

    def observed(document: str = DOCUMENT, rules: str | None = RULES) -> ObservedStack:
        documents = tmp_path / "documents"
        documents.mkdir()
        (documents / "shop.yaml").write_text(document)
        if rules is not None:
            (tmp_path / "rules.yaml").write_text(rules)
        config = {
            "bootstrapServers": "b:9092",
            "documents": "documents",
            "policies": "rules.yaml",
        }
        return ObservedStack(
            StackFacts(name="production"), stack_settings(config, environment={}), StackState()
        )

    return observed


def finding_of(observed: ObservedStack, *, is_connected: bool = True) -> Finding:
    facts = observe_policies(TARGET, observed, is_connected=is_connected)
    assert facts is not None
    [finding] = policy_findings(facts)
    return finding


@pytest.mark.parametrize(
    ("document", "rules", "reason"),
    [
        (DOCUMENT, None, "rules.yaml"),
        (DOCUMENT, "policies: [{unknownRule: {max: 9}}]", "rules.yaml"),
        ("application: {id: shop\n", RULES, "shop.yaml"),
        ("application: {id: shop}\ntopology: [{streem: orders}]\n", RULES, "shop.yaml"),
    ],
    ids=["no policy file", "an invalid policy", "an unreadable document", "an invalid document"],
)
def test_policies_are_unknown_if_a_file_cannot_be_read(
    observe: Observe, document: str, rules: str | None, reason: str
) -> None:
    finding = finding_of(observe(document, rules))
    assert finding.status is Status.UNKNOWN
    assert reason in finding.text


def test_policies_are_not_checked_without_a_connection(observe: Observe) -> None:
    observed = observe()
    finding = finding_of(observed, is_connected=False)
    assert (finding.status, finding.text) == (Status.UNKNOWN, "Not checked: the cluster did not answer")
    with pytest.raises(AssertionError, match="planned"):
        finding_of(observed)


def test_the_reason_of_a_failed_plan_is_its_first_problem(
    observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    observed = observe()
    problem = Problem(code=ProblemCode.INVALID_CONFIG, summary="first", why="", fix="")
    planned = Planned(None, (problem, attrs.evolve(problem, summary="last")))
    monkeypatch.setattr(pulumi_stack, "plan_stack", lambda *_: planned)
    finding = finding_of(observed)
    assert (finding.status, finding.text) == (Status.UNKNOWN, "Not checked: first")


def test_settings_of_single_topics_are_findings_as_in_the_plan() -> None:
    about_all = Problem(code=ProblemCode.MISCONFIGURED_INTERNAL_TOPIC, summary="default", why="", fix="")
    own = attrs.evolve(about_all, summary="single", topic="shop-counts-changelog", severity=Severity.WARNING)
    other = attrs.evolve(own, code=ProblemCode.UNDER_PARTITIONED)
    facts = PolicyFacts(policies=0, problems=(about_all, own, other), is_planned=True)
    (finding,) = topic_findings(facts)
    assert finding.status is Status.WARNING
    assert "single" in finding.text
    assert [each.status for each in topic_findings(attrs.evolve(facts, problems=(other,)))] == [Status.OK]
    assert list(topic_findings(PolicyFacts(policies=0))) == []


def test_too_few_replicas_of_several_topics_are_one_finding() -> None:
    several = Problem(
        code=ProblemCode.REPLICATION_FACTOR, summary="2 topics", why="", fix="", severity=Severity.WARNING
    )
    facts = PolicyFacts(policies=0, problems=(several,), is_planned=True)
    assert [each.status for each in topic_findings(facts)] == [Status.WARNING]


def test_without_policies_a_failed_plan_is_no_finding(
    observe: Observe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulumi_stack, "plan_stack", lambda *_: Planned(None, ()))
    observed = observe()
    assert observed.settings is not None
    without = attrs.evolve(observed.settings.policy, policies=())
    observed = attrs.evolve(observed, settings=attrs.evolve(observed.settings, policy=without))
    assert finding_of(observed).text == "the stack has no policies"


def test_a_failed_check_of_the_connection_is_recognized() -> None:
    made = Finding(section=Section.CLUSTER, check="connection", status=Status.ERROR, text="")
    assert not command._is_connected([made])
    assert command._is_connected([attrs.evolve(made, status=Status.OK)])
    assert command._is_connected([attrs.evolve(made, check="tls")])
