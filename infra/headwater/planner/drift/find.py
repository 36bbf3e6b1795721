"""Compare compiled applications and setup records with one snapshot of the cluster.

Findings about an application as a whole are a new id, shifted generated names, and missing ACLs.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from headwater.compiler.renumbering import renumbering_problems
from headwater.model.cluster import ClusterSnapshot, EvidenceRequest
from headwater.model.compiled import CompiledApplication, InternalTopic
from headwater.model.policies import Policy
from headwater.model.problems import DRIFT_WITHOUT_RECORD, PLAN, Problem, ProblemCode, Severity, errors
from headwater.model.records import SetupRecord, StackIdentity
from headwater.model.topology import Lifecycle
from headwater.planner.decide import plan
from headwater.planner.drift.findings import ApplicationDrift, Drift, Finding, FindingKind, counted_findings
from headwater.planner.drift.orphans import declared_topics, find_orphans, undeclared_topics
from headwater.planner.drift.running_topology import other_topology
from headwater.planner.drift.topics import FINDING_CODES, topic_findings
from headwater.planner.evidence.names import internal_prefix
from headwater.planner.evidence.topics import Evidence, evidence_request
from headwater.planner.phrases import counted
from headwater.planner.plans import AclActionKind, ApplicationPlan, Plan, PlanPolicy
from headwater.planner.policies.topic_settings import drift_policies

_MISSING = (AclActionKind.GRANT, AclActionKind.RESTORE)


def find_drift(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord] | None = None,
    stack: StackIdentity | None = None,
    cluster_id: str | None = None,
    *,
    earlier: Mapping[str, CompiledApplication] | None = None,
    policies: Sequence[Policy] = (),
) -> Drift:
    """Return all differences between declared and live; raises nothing.

    Args:
        compiled: the applications, compiled with the counts of `snapshot`.
        snapshot: the cluster.
        records: application id → setup record. None if no record is known: existing topics then count as
            ours, and a lost topic cannot be distinguished from a topic that was never set up.
        stack: the stack of the records; None = ownership records are not compared.
        cluster_id: the cluster that the stack names (`headwater:clusterId`), if it names one.
        earlier: applications compiled for the version of Kafka Streams in their record (`compile_recorded`).
        policies: which differences are not reported, or do not count; others are not checked.

    A problem of the plan that is a difference becomes a finding. Other errors are the drift's `problems`.
    """
    caller = PLAN if records is not None else DRIFT_WITHOUT_RECORD
    policy = PlanPolicy(stack=stack, cluster_id=cluster_id, policies=drift_policies(policies))
    made = plan(compiled, snapshot, records or {}, policy, caller=caller, earlier=earlier)
    problems = _by_application(made)
    evidence = Evidence(compiled, snapshot, records or {})
    declared = declared_topics(compiled)
    left = undeclared_topics(compiled, snapshot, records or {}, declared)
    former = _former_ids(compiled, snapshot, declared)
    applications = (
        ApplicationDrift(
            compiled=part.compiled,
            topics=tuple(sorted(action.name for action in part.actions if action.topic is not None)),
            findings=_findings_of(
                part,
                evidence,
                problems[part.application_id],
                left.get(part.application_id, ()),
                former.get(part.application_id, ()),
            ),
        )
        for part in made.applications
        if part.compiled is not None and part.compiled.application.lifecycle is Lifecycle.ACTIVE
    )
    return Drift(
        cluster_id=snapshot.cluster_id,
        applications=tuple(counted_findings(applications, policies)),
        problems=tuple(_unreported_errors(made)),
        partitions=snapshot.partitions,
    )


def drift_evidence_request(
    compiled: Sequence[CompiledApplication],
    snapshot: ClusterSnapshot,
    records: Mapping[str, SetupRecord] | None,
) -> EvidenceRequest:
    """Return what to read for `find_drift`; `snapshot` has no evidence yet.

    In question are topics that no document declares, and the ids that applications may have had before.
    """
    declared = declared_topics(compiled)
    left = undeclared_topics(compiled, snapshot, records or {}, declared)
    recorded = {name for record in (records or {}).values() for name in record.topics} - declared
    former_ids = _former_ids(compiled, snapshot, declared)
    former = (
        f"{id_}-{topic.name.removeprefix(internal_prefix(each))}"
        for each in compiled
        for id_ in former_ids.get(each.application.id, ())
        for topic in each.internal_topics
    )
    in_question = {*(name for names in left.values() for name in names), *recorded, *former}
    if records is None:
        in_question &= snapshot.topics.keys()
        return EvidenceRequest(topics=frozenset(in_question), offsets_of=None, with_ownership=True)
    return evidence_request(compiled, snapshot, records, in_question)


def _renamed_application(
    part: ApplicationPlan, evidence: Evidence, former_ids: Sequence[str]
) -> Finding | None:
    """Return a finding if no topic of the application exists and all exist under the names of a former id.

    The former id must not be in use: it has no running group, and no other stack records it.
    """
    compiled = part.compiled
    if compiled is None or part.recorded is not None:
        return None
    renamed_from = compiled.application.renamed_from
    former = next((id_ for id_ in former_ids if id_ == renamed_from or evidence.is_unused(id_)), None)
    if former is None:
        return None
    names = [topic.name for topic in compiled.internal_topics]
    is_declared = renamed_from == former
    return Finding(
        kind=FindingKind.RENAMED,
        severity=Severity.WARNING,
        application=part.application_id,
        what=f"No internal topic of {part.application_id} exists, but topics of the same names exist for "
        f"{former}, which is not running: it may have been renamed."
        if not is_declared
        else f"The internal topics of {part.application_id} still have the names of {former}.",
        expected=f"{counted(len(names), 'topic')} that begin{'s' if len(names) == 1 else ''} with "
        f"{internal_prefix(compiled)}",
        found=f"they begin with {former}-, and no group {former} has members",
        why="Kafka Streams names internal topics after the application id: under a new id the application "
        "starts without its former state and offsets.",
        fix=f"If {former} was renamed by mistake, use {former} again. If the new id is intended, "
        + ("" if is_declared else f"declare `renamedFrom: {former}` and ")
        + "run `pulumi up`, which creates the new topics. Rebuild the state from the source topics."
        + ("" if is_declared else " If both are different applications, run `pulumi up`."),
        location=compiled.application.at,
    )


def _find_successors(
    part: ApplicationPlan, snapshot: ClusterSnapshot, problems: Sequence[Problem], left: Sequence[str]
) -> tuple[Problem, ...]:
    """Return a problem for each topic that got another generated name.

    `expected` of a problem is the old name, `topic` the new one. Without a setup record, undeclared topics on
    the cluster (`left`) count as those that were set up.
    """
    recorded = tuple(problem for problem in problems if problem.code is ProblemCode.RENUMBERED)
    if part.recorded is not None or part.compiled is None:
        return recorded
    live = {topic.name for topic in part.compiled.internal_topics if topic.name in snapshot.topics}
    return renumbering_problems(dict.fromkeys((*left, *live), ""), part.compiled)


def _renumbered_topics(moved: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield the problems of `_find_successors` as findings: one, not a missing topic and an orphaned one."""
    for problem in moved:
        yield _problem_finding(FindingKind.RENUMBERED, problem, part, problem.topic)


def _unavailable_partitions(problems: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for each problem of partitions without a leader or with replicas not in sync."""
    for problem in problems:
        if problem.code is ProblemCode.UNAVAILABLE_PARTITIONS:
            yield _problem_finding(FindingKind.UNAVAILABLE, problem, part)


def _excess_permissions(problems: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for permissions with which an application could replace a lost topic."""
    for problem in problems:
        if problem.code is ProblemCode.EXCESS_PERMISSIONS:
            yield _problem_finding(FindingKind.ACL, problem, part)


def _broker_defaults(problems: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for each default of the brokers that harms internal topics."""
    for problem in problems:
        if problem.code is ProblemCode.MISCONFIGURED_INTERNAL_TOPIC and problem.topic is None:
            yield _problem_finding(FindingKind.CONFIG, problem, part)


def _problem_finding(
    kind: FindingKind, problem: Problem, part: ApplicationPlan, topic: str | None = None
) -> Finding:
    """Return a problem of a plan as a finding; without `topic`, it concerns the whole application."""
    return Finding(
        kind=kind,
        severity=problem.severity,
        application=part.application_id,
        topic=topic,
        what=problem.summary,
        expected=problem.expected or "",
        found=problem.found or "",
        why=problem.why,
        fix=problem.fix,
        location=problem.location,
    )


def _missing_acls(part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for each declared ACL that does not exist on the cluster."""
    for action in part.acls:
        if action.kind in _MISSING:
            was_held = action.kind is AclActionKind.RESTORE
            yield Finding(
                kind=FindingKind.ACL,
                severity=Severity.WARNING,
                application=part.application_id,
                what=f"{action.acl.text}: the ACL is declared and does not exist.",
                expected=f"{action.acl.text} ({action.reason})",
                found="revoked since it was granted" if was_held else "none",
                why="Unless another ACL allows the same, the application is not authorized and stops.",
                fix="Find out who revoked it. Otherwise run `pulumi up`, which grants it again."
                if was_held
                else "Run `pulumi up`, which grants it.",
                location=part.compiled.application.at if part.compiled else None,
            )


def _former_ids(
    compiled: Sequence[CompiledApplication], snapshot: ClusterSnapshot, declared: Collection[str]
) -> Mapping[str, Sequence[str]]:
    """Return application id → other ids for which all its internal topics exist; none exists for its own.

    Topics in `declared`, which documents mention, do not belong to an earlier id.
    """
    tails = {
        each.application.id: [
            topic.name.removeprefix(internal_prefix(each)) for topic in each.internal_topics
        ]
        for each in compiled
        if each.internal_topics and not any(topic.name in snapshot.topics for topic in each.internal_topics)
    }
    left = snapshot.topics.keys() - declared
    found = _ids_by_tail({first for first, *_ in tails.values()}, left)
    return {
        own: [id_ for id_ in found.get(names[0], ()) if all(f"{id_}-{tail}" in left for tail in names)]
        for own, names in tails.items()
    }


def _ids_by_tail(tails: Collection[str], topics: Iterable[str]) -> Mapping[str, Sequence[str]]:
    """Return tail → the ids, sorted, for which a topic `<id>-<tail>` exists; both may contain hyphens."""
    ids: defaultdict[str, list[str]] = defaultdict(list)
    if tails:
        for name in topics:
            id_, hyphen, tail = name.partition("-")
            while hyphen:
                if id_ and tail in tails:
                    ids[tail].append(id_)
                head, hyphen, tail = tail.partition("-")
                id_ = f"{id_}-{head}"
    return {tail: sorted(each) for tail, each in ids.items()}


_ORDER = {kind: number for number, kind in enumerate(FindingKind)}
_ABSENCE = (FindingKind.MISSING, FindingKind.ORPHANED, FindingKind.SUSPECTED)


def _by_application(made: Plan) -> Mapping[str | None, list[Problem]]:
    problems: defaultdict[str | None, list[Problem]] = defaultdict(list)
    for problem in made.problems:
        problems[problem.application].append(problem)
    return problems


def _findings_of(
    part: ApplicationPlan,
    evidence: Evidence,
    problems: Sequence[Problem],
    left: Sequence[str],
    former_ids: Sequence[str],
) -> tuple[Finding, ...]:
    """A topic with a new name is one finding, not a missing topic and an orphaned one."""
    snapshot = evidence.snapshot
    another = _renamed_application(part, evidence, former_ids)
    own = [
        name for name in left if evidence.about_topic(part.application_id, snapshot.topics[name]).is_proven
    ]
    moved = () if another else _find_successors(part, snapshot, problems, own)
    explained = {name for problem in moved for name in (problem.expected, problem.topic)}
    if another and part.compiled is not None:
        explained |= {topic.name for topic in part.compiled.internal_topics}
    each = (
        *topic_findings(part, snapshot, problems),
        *find_orphans(part, left, evidence),
        *_missing_acls(part),
    )
    findings = [
        *([another] if another else ()),
        *_renumbered_topics(moved, part),
        *_unavailable_partitions(problems, part),
        *_excess_permissions(problems, part),
        *_broker_defaults(problems, part),
        *other_topology(part, snapshot),
        *(finding for finding in each if finding.kind not in _ABSENCE or finding.topic not in explained),
    ]
    return tuple(
        sorted(findings, key=lambda finding: (_ORDER[finding.kind], finding.topic or "", finding.what))
    )


def _unreported_errors(made: Plan) -> Iterator[Problem]:
    """Return errors that no finding reports: findings are about topics that exist."""
    live = {action.name for action in made.actions if action.live is not None}
    growing = {
        part.application_id
        for part in made.applications
        if any(action.added_partitions and isinstance(action.topic, InternalTopic) for action in part.actions)
    }
    for problem in errors(made.problems):
        is_reported = problem.code in FINDING_CODES
        if problem.code in (ProblemCode.REPLICATION_FACTOR, ProblemCode.PROCESSOR_COUNT):
            is_reported = problem.topic in live
        elif problem.code is ProblemCode.UNSAFE_EXPANSION:
            is_reported = problem.application in growing
        if not is_reported:
            yield problem
