"""Which findings count: policies tolerate some by severity, number and kind of topic."""

import pytest

from headwater.model.problems import Severity
from headwater.planner.drift.findings import ApplicationDrift, Finding, FindingKind, counted_findings
from tests.planner.simulated_cluster import CHANGELOG, REPARTITION, application
from tests.policies.policy_cases import policies


def finding(topic: str | None, severity: Severity, kind: FindingKind = FindingKind.MISSING) -> Finding:
    return Finding(
        kind=kind,
        severity=severity,
        application="orders",
        topic=topic,
        what="It differs.",
        expected="a",
        found="b",
        why="It matters.",
        fix="Fix it.",
    )


FOUND = (
    finding(CHANGELOG, Severity.ERROR),
    finding(REPARTITION, Severity.WARNING),
    finding(None, Severity.INFO),
)


@pytest.mark.parametrize(
    ("policy", "counted"),
    [
        ("drift: {failOn: error}", [True, False, False]),
        ("drift: {failOn: warning}", [True, True, False]),
        ("drift: {tolerated: 3}", [False, False, False]),
        ("drift: {tolerated: 2}", [True, True, True]),
        ("drift: {failOn: warning, tolerated: 2}", [False, False, False]),
        ("drift: {failOn: error, kinds: [repartition]}", [True, False, True]),
        ("drift: {tolerated: 9, applications: other}", [True, True, True]),
        ("drift: {failOn: error}\n  - drift: {tolerated: 1}", [False, False, False]),
    ],
)
def test_a_policy_decides_which_findings_count(policy: str, counted: list[bool]) -> None:
    drift = ApplicationDrift(application(), (), FOUND)
    (found,) = counted_findings([drift], policies(policy))
    assert [each.counts for each in found.findings] == counted


def test_a_limit_is_for_all_applications_together() -> None:
    drifts = [ApplicationDrift(application(id_=id_), (), FOUND[:1]) for id_ in ("orders", "sales")]
    found = counted_findings(drifts, policies("drift: {tolerated: 1}"))
    assert [each.counts for part in found for each in part.findings] == [True, True]


def test_a_suspicion_is_no_drift() -> None:
    suspected = finding("x", Severity.INFO, FindingKind.SUSPECTED)
    drift = ApplicationDrift(application(), (), (*FOUND, suspected))
    assert not suspected.is_difference
    assert drift.drifted == {CHANGELOG, REPARTITION}
