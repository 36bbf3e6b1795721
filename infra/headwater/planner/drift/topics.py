"""Findings about declared topics, from the problems and the actions of the plan."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

import attrs

from headwater.compiler.streams_config import StreamsConfig
from headwater.model.broker_defaults import BROKER_DEFAULTS
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import InternalTopic
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.drift.findings import Finding, FindingKind
from headwater.planner.phrases import config_text, counted
from headwater.planner.plans import ApplicationPlan, ConfigChange, TopicAction
from headwater.planner.settings import Settings

_KINDS = {
    ProblemCode.SOURCE_TOPICS_EXPANDED: FindingKind.UNDER_PARTITIONED,
    ProblemCode.UNDER_PARTITIONED: FindingKind.UNDER_PARTITIONED,
    ProblemCode.OVER_PARTITIONED: FindingKind.OVER_PARTITIONED,
    ProblemCode.MISCONFIGURED_INTERNAL_TOPIC: FindingKind.CONFIG,
    ProblemCode.REPLICATION_FACTOR: FindingKind.REPLICATION_FACTOR,
}
FINDING_CODES = frozenset(_KINDS) | {
    ProblemCode.MISSING_INTERNAL_TOPICS,
    ProblemCode.EXPLICIT_COUNT_CHANGED,
    ProblemCode.RENUMBERED,
    ProblemCode.UNSAFE_EXPANSION,
    ProblemCode.PROCESSOR_COUNT,
}
"""Problems of the plan that are differences between declared and live topics."""


def topic_findings(
    part: ApplicationPlan, snapshot: ClusterSnapshot, problems: Sequence[Problem]
) -> Iterator[Finding]:
    """Yield the findings about each declared topic. `problems` are problems of the application."""
    reported: defaultdict[str | None, list[Problem]] = defaultdict(list)
    for problem in problems:
        reported[problem.topic].append(problem)
    unsafe = next((p for p in problems if p.code is ProblemCode.UNSAFE_EXPANSION), None)
    for action in part.actions:
        if action.topic is not None:
            topic = _Topic(part, action, snapshot.topic_defaults)
            known = [
                finding for problem in reported[action.name] for finding in _from_problem(topic, problem)
            ]
            yield from known
            kinds = {finding.kind for finding in known}
            yield from topic.find_missing_topic(kinds)
            yield from topic.find_missing_partitions(unsafe)
            reported_keys = {
                finding.expected.partition(" ")[0] for finding in known if finding.kind is FindingKind.CONFIG
            }
            yield from topic.find_other_settings(reported_keys)


def _from_problem(topic: "_Topic", problem: Problem) -> Iterator[Finding]:
    kind = _KINDS.get(problem.code)
    if problem.code in (ProblemCode.EXPLICIT_COUNT_CHANGED, ProblemCode.PROCESSOR_COUNT):
        have = topic.action.live.partitions if topic.action.live else 0
        is_short = topic.action.topic is not None and have < (topic.action.topic.partitions or 0)
        # A warning is about processors that are still to be added; their partitions may exist.
        is_short |= problem.code is ProblemCode.PROCESSOR_COUNT and problem.severity is Severity.WARNING
        kind = FindingKind.UNDER_PARTITIONED if is_short else FindingKind.OVER_PARTITIONED
    if problem.code is ProblemCode.MISSING_INTERNAL_TOPICS:
        kind = FindingKind.MISSING if topic.action.live is None else FindingKind.RECREATED
    if kind is None or (kind is FindingKind.REPLICATION_FACTOR and topic.action.live is None):
        return
    yield topic.new_finding(
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
    """A declared topic with its action in the plan."""

    part: ApplicationPlan
    action: TopicAction
    defaults: Mapping[str, str]

    def find_missing_topic(self, reported: set[FindingKind]) -> Iterator[Finding]:
        """Yield a finding if the topic does not exist and no record says that it ever did."""
        if self.action.live is None and FindingKind.MISSING not in reported:
            yield self.new_finding(
                FindingKind.MISSING,
                Severity.WARNING,
                what=f"{self.action.title} is declared and does not exist.",
                expected=counted(self.action.partitions, "partition"),
                found="none",
                why="It was not set up yet, or it was deleted. The application waits for it, or creates one "
                "that Headwater does not manage.",
                fix="If the application was running before, find out who deleted the topic: its data is "
                "lost. Otherwise run `pulumi up`, which creates it.",
            )

    def find_missing_partitions(self, unsafe: Problem | None) -> Iterator[Finding]:
        """Yield a finding for too few partitions. A run adds them, unless that moves keys away from state."""
        live = self.action.live
        if live is None or not self.action.added_partitions:
            return
        refused = unsafe if isinstance(self.action.topic, InternalTopic) else None
        yield self.new_finding(
            FindingKind.UNDER_PARTITIONED,
            Severity.ERROR if refused else Severity.WARNING,
            what=f"{self.action.title} has fewer partitions than its sources or its document require.",
            expected=counted(self.action.partitions, "partition"),
            found=counted(live.partitions, "partition"),
            why=refused.why
            if refused
            else "Until then the application has less parallelism than its sources allow, or it stops at its "
            "next rebalance.",
            fix=refused.fix
            if refused
            else "Run `pulumi up`, which adds the partitions, downstream topics first.",
        )

    def find_other_settings(self, reported: set[str]) -> Iterator[Finding]:
        """Yield a finding for each setting that differs and that no problem has `reported`."""
        for changes, fix in ((self.action.changes, _RECONFIGURED), (self.action.drift, _STAYS)):
            for change in changes:
                if change.key not in reported:
                    yield self._setting_finding(change, fix)

    def _setting_finding(self, change: ConfigChange, fix: str) -> Finding:
        is_declared = change.declared is not None
        return self.new_finding(
            FindingKind.CONFIG,
            Severity.INFO,
            what=f"Setting {change.key} of topic {self.action.name} "
            + ("differs from the declared value." if is_declared else "was set and is not declared."),
            expected=f"{change.key} {_value_text(change.declared)}",
            found=f"{change.key} {_value_text(change.live)}",
            why=_RETAINED
            if self._decides_deletion(change)
            else "It does not endanger data, but the document does not show it.",
            fix=fix if is_declared else _fix_of_undeclared(self, change.key),
        )

    def _decides_deletion(self, change: ConfigChange) -> bool:
        """Return whether Kafka deletes records because of the setting, as long as the topic's policy does."""
        if change.key != "retention.ms" or self.action.live is None:
            return False
        settings = Settings(self.action.live, self.defaults)
        return "delete" in settings.cleanup_policies() and not math.isinf(
            settings.effective_limit(change.key)
        )

    def new_finding(
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


_RETAINED = "While `cleanup.policy` has `delete`, Kafka deletes older records. The document does not show it."
_RECONFIGURED = "Run `pulumi up`, which sets the declared value, or declare the live value."
_STAYS = (
    "Set the declared value with `kafka-configs.sh`, declare the live value, or set "
    "`internal.topics.setup: automatic` and run `pulumi up`, which sets the declared value."
)


def _fix_of_undeclared(topic: _Topic, key: str) -> str:
    """Return what to do about a setting that is not declared: it may protect from a broker default."""
    default, value, live = BROKER_DEFAULTS.get(key), topic.defaults.get(key), topic.action.live
    where = _where_declared(topic, key)
    undeclared = f"Declare it ({where}), {_OR_REMOVE}"
    if default is None or value is None or live is None or topic.part.compiled is None:
        return undeclared
    policy = Settings(live, topic.defaults).effective_value("cleanup.policy") or ""
    largest = StreamsConfig.from_application(topic.part.compiled.application).largest_request
    if not default.is_harmful(value, largest) or not default.has_effect(policy):
        return undeclared
    return f"Declare it ({where}). Do not remove it: the brokers' default {value} would harm the topic."


_OR_REMOVE = "or remove it with `kafka-configs.sh`. Until then it stays as it is."


def _where_declared(topic: _Topic, key: str) -> str:
    """Return where a document declares a setting of a topic."""
    declared, live = topic.action.topic, topic.action.live
    if not isinstance(declared, InternalTopic):
        return "`config` of the topic below `topics`"
    if topic.part.compiled is not None and topic.part.compiled.is_observed and live is not None:
        text = config_text({**declared.config, key: live.config.get(key, "")})
        return f"below `observed.topics`: `{text}`"
    return "`topic.` configs of the application, or the store's overrides"


def _value_text(text: str | None) -> str:
    return "not set" if text is None else text
