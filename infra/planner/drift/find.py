"""From compiled applications, one cluster snapshot and the recorded setups to what differs."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence

from infra.model.callers import DRIFT_WITHOUT_RECORD, PLAN
from infra.model.cluster import ClusterSnapshot
from infra.model.compiled import CompiledApplication
from infra.model.problems import Problem, ProblemCode, errors
from infra.model.record import SetupRecord
from infra.model.topology import Lifecycle
from infra.planner.decide import plan
from infra.planner.drift.acls import lacking_acls
from infra.planner.drift.applications import renamed
from infra.planner.drift.findings import ApplicationDrift, Drift, Finding, FindingKind
from infra.planner.drift.orphans import declared_topics, orphaned, strays
from infra.planner.drift.renumbering import renumbered, successors
from infra.planner.drift.topics import FINDING_CODES, topic_findings
from infra.planner.plans import ApplicationPlan, Plan, PlanPolicy

_ORDER = {kind: number for number, kind in enumerate(FindingKind)}
_ABSENCE = (FindingKind.MISSING, FindingKind.ORPHANED)


def find_drift(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord] | None = None,
) -> Drift:
    """Compare; finds all differences, raises nothing.

    `records` is application id → recorded setup, None when nobody knows what was set up: what exists then
    counts as ours, and topics that were lost cannot be told from those that never were. A problem of the plan
    that is a difference becomes a finding; the other errors are the drift's `problems`.
    """
    caller = PLAN if records is not None else DRIFT_WITHOUT_RECORD
    made = plan(compiled, snapshot, records or {}, PlanPolicy(), caller=caller)
    problems = _by_application(made)
    declared = declared_topics(compiled)
    left = strays(compiled, snapshot, records or {}, declared)
    return Drift(
        cluster_id=snapshot.cluster_id,
        applications=tuple(
            ApplicationDrift(
                compiled=part.compiled,
                topics=tuple(sorted(action.name for action in part.actions if action.topic is not None)),
                findings=_findings(
                    part,
                    snapshot,
                    problems[part.application_id],
                    left.get(part.application_id, ()),
                    declared,
                ),
            )
            for part in made.applications
            if part.compiled is not None and part.compiled.application.lifecycle is Lifecycle.ACTIVE
        ),
        problems=tuple(_untold(made)),
        partitions=snapshot.partitions,
    )


def _by_application(made: Plan) -> Mapping[str | None, list[Problem]]:
    problems: defaultdict[str | None, list[Problem]] = defaultdict(list)
    for problem in made.problems:
        problems[problem.application].append(problem)
    return problems


def _findings(
    part: ApplicationPlan,
    snapshot: ClusterSnapshot,
    problems: Sequence[Problem],
    left: Sequence[str],
    declared: Collection[str],
) -> tuple[Finding, ...]:
    """Of a topic that goes on under another name only that is told, not that one misses and one is left."""
    another = renamed(part, snapshot, declared)
    moved = () if another else successors(part, snapshot, problems, left)
    explained = {name for problem in moved for name in (problem.expected, problem.topic)}
    if another and part.compiled is not None:
        explained |= {topic.name for topic in part.compiled.internal_topics}
    each = (*topic_findings(part, snapshot, problems), *orphaned(part, left, snapshot), *lacking_acls(part))
    findings = [
        *([another] if another else ()),
        *renumbered(moved, part),
        *(finding for finding in each if finding.kind not in _ABSENCE or finding.topic not in explained),
    ]
    return tuple(
        sorted(findings, key=lambda finding: (_ORDER[finding.kind], finding.topic or "", finding.what))
    )


def _untold(made: Plan) -> Iterator[Problem]:
    """Return errors that no finding reports."""
    live = {action.name for action in made.actions if action.live is not None}
    for problem in errors(made.problems):
        is_told = problem.code in FINDING_CODES and not (
            problem.code is ProblemCode.REPLICATION_FACTOR and problem.topic not in live
        )
        if not is_told:
            yield problem
