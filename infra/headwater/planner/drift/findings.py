"""Findings: differences between what documents declare and what the cluster has."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import attrs

from headwater.model.compiled import CompiledApplication
from headwater.model.policies import DriftTolerance, Policy, TopicClass
from headwater.model.problems import Location, Problem, Severity
from headwater.planner.policies.subject import applies_to
from headwater.planner.policies.topic_settings import drift_policies, topic_class


class FindingKind(StrEnum):
    """All kinds of differences, in the order of reports. `docs/drift.md` explains each."""

    RENAMED = "renamed"
    RENUMBERED = "renumbered"
    TOPOLOGY = "topology"
    MISSING = "missing"
    RECREATED = "re-created"
    OVER_PARTITIONED = "over-partitioned"
    UNDER_PARTITIONED = "under-partitioned"
    REPLICATION_FACTOR = "replication-factor"
    UNAVAILABLE = "unavailable"
    CONFIG = "config"
    ORPHANED = "orphaned"
    SUSPECTED = "suspected"
    ACL = "acl"


@attrs.frozen(kw_only=True)
class Finding:
    """One difference.

    `what` is one sentence, `expected` and `found` are short phrases. `why` names the consequences, `fix` what
    to do. `topic` is None if it concerns the whole application. With an ERROR `pulumi up` stops; a WARNING
    affects or affected data or processing; INFO does neither.
    """

    kind: FindingKind
    severity: Severity
    application: str
    topic: str | None = None
    what: str
    expected: str
    found: str
    why: str
    fix: str
    location: Location | None = None
    counts: bool = True
    """Whether it counts for the exit code; False = a policy tolerates it."""

    @property
    def is_difference(self) -> bool:
        """Return whether it is drift: a suspicion is only reported."""
        return self.kind is not FindingKind.SUSPECTED


@attrs.frozen
class ApplicationDrift:
    """One active application: `topics` are the names that its document declares, sorted, sinks included."""

    compiled: CompiledApplication
    topics: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def id(self) -> str:
        return self.compiled.application.id

    @property
    def drifted(self) -> frozenset[str]:
        """Return the names of topics that differ, declared or not."""
        return frozenset(
            finding.topic for finding in self.findings if finding.topic is not None and finding.is_difference
        )


@attrs.frozen
class Drift:
    """What differs on the cluster `cluster_id`.

    With `problems` the comparison is not complete. `partitions` are the counts of all live topics.
    """

    cluster_id: str
    applications: tuple[ApplicationDrift, ...]
    problems: tuple[Problem, ...] = ()
    partitions: Mapping[str, int] = attrs.field(factory=dict)

    @property
    def findings(self) -> Iterator[Finding]:
        """Return all findings, application by application."""
        return (finding for application in self.applications for finding in application.findings)

    @property
    def differences(self) -> tuple[Finding, ...]:
        """Return the findings that are drift: without suspicions."""
        return tuple(finding for finding in self.findings if finding.is_difference)

    @property
    def has_drift(self) -> bool:
        """Return whether there is a finding that no policy tolerates."""
        return any(finding.counts for finding in self.differences)

    @property
    def is_clean(self) -> bool:
        return not self.problems and not self.has_drift


def counted_findings(
    applications: Iterable[ApplicationDrift], policies: Sequence[Policy]
) -> Iterator[ApplicationDrift]:
    """Yield the applications; `counts` of each finding says whether it is more than a policy tolerates."""
    found = tuple(applications)
    for policy in drift_policies(policies):
        rule = policy.rule
        assert isinstance(rule, DriftTolerance)  # noqa: S101 - selected by `tolerances`
        chosen = [
            (part.id, finding)
            for part in found
            if applies_to(policy, part.id)
            for finding in part.findings
            if finding.counts and _class_of(part, finding) in rule.classes
        ]
        least = _SEVERITIES.index(rule.least)
        severe = [each for each in chosen if _SEVERITIES.index(each[1].severity) >= least]
        tolerated = [each for each in chosen if len(severe) <= rule.tolerated or each not in severe]
        found = tuple(_tolerate_findings(part, tolerated) for part in found)
    yield from found


def _tolerate_findings(part: ApplicationDrift, tolerated: Sequence[tuple[str, Finding]]) -> ApplicationDrift:
    findings = (
        attrs.evolve(finding, counts=False) if (part.id, finding) in tolerated else finding
        for finding in part.findings
    )
    return attrs.evolve(part, findings=tuple(findings))


def _class_of(part: ApplicationDrift, finding: Finding) -> TopicClass:
    declared = {topic.name: topic for topic in part.compiled.internal_topics}
    return topic_class(declared.get(finding.topic or ""))


_SEVERITIES = (Severity.INFO, Severity.WARNING, Severity.ERROR)
"""From the least to the worst."""
