"""Findings about the topics that a document declares: what the plan's problems and actions say of each."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import InternalTopic
from infra.model.problems import Problem, ProblemCode, Severity
from infra.planner.actions import ConfigChange, TopicAction
from infra.planner.drift.findings import Finding, FindingKind
from infra.planner.drift.wording import partitions, title, value
from infra.planner.plans import ApplicationPlan
from infra.planner.settings import Settings, misconfigurations

_KINDS = {
    ProblemCode.SOURCE_TOPICS_EXPANDED: FindingKind.UNDER_PARTITIONED,
    ProblemCode.OVER_PARTITIONED: FindingKind.OVER_PARTITIONED,
    ProblemCode.MISCONFIGURED_INTERNAL_TOPIC: FindingKind.CONFIG,
    ProblemCode.REPLICATION_FACTOR: FindingKind.REPLICATION_FACTOR,
}
FINDING_CODES = frozenset(_KINDS) | {
    ProblemCode.MISSING_INTERNAL_TOPICS,
    ProblemCode.RENUMBERED,
    ProblemCode.UNSAFE_EXPANSION,
}
"""Problems of the plan that are differences between what is declared and what is live."""


def topic_findings(
    part: ApplicationPlan, snapshot: ClusterSnapshot, problems: Sequence[Problem]
) -> Iterator[Finding]:
    """Yield what differs about each declared topic; `problems` are those of the application."""
    told: defaultdict[str | None, list[Problem]] = defaultdict(list)
    for problem in problems:
        told[problem.topic].append(problem)
    unsafe = next((p for p in problems if p.code is ProblemCode.UNSAFE_EXPANSION), None)
    for action in part.actions:
        if action.topic is not None:
            topic = _Topic(part, action, snapshot.topic_defaults)
            known = [finding for problem in told[action.name] for finding in _from_problem(topic, problem)]
            yield from known
            kinds = {finding.kind for finding in known}
            yield from topic.missing(kinds)
            yield from topic.growing(unsafe)
            yield from topic.configured()
            yield from topic.replicated(kinds)


def _from_problem(topic: "_Topic", problem: Problem) -> Iterator[Finding]:
    kind = _KINDS.get(problem.code)
    if problem.code is ProblemCode.MISSING_INTERNAL_TOPICS:
        kind = FindingKind.MISSING if topic.action.live is None else FindingKind.RECREATED
    if kind is None or (kind is FindingKind.REPLICATION_FACTOR and topic.action.live is None):
        return
    yield topic.finding(
        kind,
        problem.severity,
        what=problem.summary,
        expected=problem.expected or "",
        found=problem.found or "",
        why=problem.why,
        fix=problem.fix,
    )


@attrs.frozen
class _Topic:
    """A declared topic with what the plan does about it."""

    part: ApplicationPlan
    action: TopicAction
    defaults: Mapping[str, str]

    def missing(self, told: set[FindingKind]) -> Iterator[Finding]:
        """It never was there, as far as anybody knows."""
        if self.action.live is None and FindingKind.MISSING not in told:
            yield self.finding(
                FindingKind.MISSING,
                Severity.WARNING,
                what=f"{title(self.action)} is declared and does not exist.",
                expected=partitions(self.action.partitions),
                found="none",
                why="It was not set up yet, or it was deleted. The application waits for it, or makes one by "
                "itself that nobody looks after.",
                fix="If the application ran before, find out who deleted it: what it held is lost. Otherwise "
                "run `pulumi up`, which creates it.",
            )

    def growing(self, unsafe: Problem | None) -> Iterator[Finding]:
        """Fewer partitions than declared, and a run adds them unless that moves keys away from state."""
        live = self.action.live
        if live is None or not self.action.added_partitions:
            return
        refused = unsafe if isinstance(self.action.topic, InternalTopic) else None
        yield self.finding(
            FindingKind.UNDER_PARTITIONED,
            Severity.ERROR if refused else Severity.WARNING,
            what=f"{title(self.action)} has fewer partitions than its sources or its document ask for.",
            expected=partitions(self.action.partitions),
            found=partitions(live.partitions),
            why=refused.why
            if refused
            else "Until it has them, the application processes with less parallelism than its sources "
            "allow, or stops at its next rebalance.",
            fix=refused.fix
            if refused
            else "Run `pulumi up`, which adds the partitions, downstream topics first.",
        )

    def configured(self) -> Iterator[Finding]:
        """Settings that differ without endangering data; the others are problems of the plan."""
        dangerous: set[str] = set()
        if isinstance(self.action.topic, InternalTopic) and self.action.live is not None:
            settings = Settings(self.action.live, self.defaults)
            dangerous = {fault.change.key for fault in misconfigurations(self.action.topic, settings)}
        for changes, fix in ((self.action.changes, _PUT_RIGHT), (self.action.drift, _STAYS)):
            for change in changes:
                if change.key not in dangerous:
                    yield self._setting(change, fix)

    def replicated(self, told: set[FindingKind]) -> Iterator[Finding]:
        """Another replication factor than the document asks for; -1, the broker's default, asks for none."""
        live, wanted = self.action.live, getattr(self.action.topic, "replication_factor", None)
        if live is None or not wanted or wanted < 1 or wanted == live.replication_factor:
            return
        if FindingKind.REPLICATION_FACTOR in told:
            return
        is_short = live.replication_factor < wanted
        yield self.finding(
            FindingKind.REPLICATION_FACTOR,
            Severity.WARNING if is_short else Severity.INFO,
            what=f"{title(self.action)} has {'fewer' if is_short else 'more'} replicas than declared.",
            expected=f"replication factor {wanted}",
            found=f"replication factor {live.replication_factor}",
            why="Its data survives the loss of fewer brokers than was asked for."
            if is_short
            else "It takes more disk space and traffic than was asked for.",
            fix="Reassign its partitions (`kafka-reassign-partitions.sh`), or correct the declared factor: "
            "neither Headwater nor Pulumi moves replicas.",
        )

    def _setting(self, change: ConfigChange, fix: str) -> Finding:
        is_declared = change.wanted is not None
        return self.finding(
            FindingKind.CONFIG,
            Severity.INFO,
            what=f"Setting {change.key} of topic {self.action.name} "
            + ("differs from what is declared." if is_declared else "was set and is not declared."),
            expected=f"{change.key} {value(change.wanted)}",
            found=f"{change.key} {value(change.live)}",
            why="It endangers no data by itself, but nobody who reads the document knows of it.",
            fix=fix if is_declared else _UNDECLARED,
        )

    def finding(
        self,
        kind: FindingKind,
        severity: Severity,
        *,
        what: str,
        expected: str,
        found: str,
        why: str,
        fix: str,
    ) -> Finding:
        compiled = self.part.compiled
        topic = self.action.topic
        at = topic.at if isinstance(topic, InternalTopic) else None
        return Finding(
            kind=kind,
            severity=severity,
            application=self.part.application_id,
            topic=self.action.name,
            what=what,
            expected=expected,
            found=found,
            why=why,
            fix=fix,
            location=at or (compiled.application.at if compiled else None),
        )


_PUT_RIGHT = "Run `pulumi up`, which puts it right, or declare the value that it has."
_STAYS = (
    "Set the declared value with `kafka-configs.sh`, declare the value that it has, or let `pulumi up` put "
    "it right with `internal.topics.setup: automatic`."
)
_UNDECLARED = (
    "Declare it (`topic.` configs of the application, or the store's overrides), or remove it with "
    "`kafka-configs.sh`. Until then it stays as it is."
)
