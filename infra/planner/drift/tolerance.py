"""Which findings count for the exit code: policies tolerate others."""

from collections.abc import Iterable, Iterator, Sequence

import attrs

from infra.model.policies import DriftTolerance, Policy, TopicClass
from infra.model.problems import Severity
from infra.planner.drift.findings import ApplicationDrift, Finding
from infra.planner.policies.drift_tolerance import tolerances, topic_class
from infra.planner.policies.patterns import chooses

_ORDER = (Severity.INFO, Severity.WARNING, Severity.ERROR)


def counted_findings(
    applications: Iterable[ApplicationDrift], policies: Sequence[Policy]
) -> Iterator[ApplicationDrift]:
    """Yield the applications; `counts` of each finding says whether it is more than a policy tolerates."""
    found = tuple(applications)
    for policy in tolerances(policies):
        rule = policy.rule
        assert isinstance(rule, DriftTolerance)  # noqa: S101 - selected by `tolerances`
        chosen = [
            (part.id, finding)
            for part in found
            if chooses(policy, part.id)
            for finding in part.findings
            if finding.counts and _class_of(part, finding) in rule.classes
        ]
        least = _ORDER.index(rule.least)
        severe = [each for each in chosen if _ORDER.index(each[1].severity) >= least]
        tolerated = [each for each in chosen if len(severe) <= rule.tolerated or each not in severe]
        found = tuple(_tolerated(part, tolerated) for part in found)
    yield from found


def _tolerated(part: ApplicationDrift, tolerated: Sequence[tuple[str, Finding]]) -> ApplicationDrift:
    findings = (
        attrs.evolve(finding, counts=False) if (part.id, finding) in tolerated else finding
        for finding in part.findings
    )
    return attrs.evolve(part, findings=tuple(findings))


def _class_of(part: ApplicationDrift, finding: Finding) -> TopicClass:
    declared = {topic.name: topic for topic in part.compiled.internal_topics}
    return topic_class(declared.get(finding.topic or ""))
