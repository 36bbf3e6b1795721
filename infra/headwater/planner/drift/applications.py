"""Findings about an application as a whole: a new id, shifted generated names, missing ACLs."""

from collections.abc import Collection, Iterator, Sequence

from headwater.compiler.renumbering import renumbering_problems
from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, ProblemCode, Severity
from headwater.planner.actions import AclActionKind
from headwater.planner.drift.findings import Finding, FindingKind
from headwater.planner.drift.orphans import prefix
from headwater.planner.evidence.topics import Evidence
from headwater.planner.phrases import counted
from headwater.planner.plans import ApplicationPlan

_MISSING = (AclActionKind.GRANT, AclActionKind.RESTORE)


def renamed(part: ApplicationPlan, evidence: Evidence, declared: Collection[str]) -> Finding | None:
    """Return a finding if no topic of the application exists and all exist under another id's names.

    `declared` are the topics that documents mention: they do not belong to an earlier id. The other id must
    not be in use: it has no running group, and no other stack records it.
    """
    compiled = part.compiled
    if compiled is None or part.recorded is not None:
        return None
    ids = former_ids(compiled, evidence.snapshot, declared)
    renamed_from = compiled.application.renamed_from
    former = next((id_ for id_ in ids if id_ == renamed_from or evidence.is_unused(id_)), None)
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
        f"{prefix(compiled)}",
        found=f"they begin with {former}-, and no group {former} has members",
        why="Kafka Streams names internal topics after the application id: under a new id the application "
        "starts without its former state and offsets.",
        fix=f"If {former} was renamed by mistake, use {former} again. If the new id is intended, "
        + ("" if is_declared else f"declare `renamedFrom: {former}` and ")
        + "run `pulumi up`, which creates the new topics. Rebuild the state from the source topics."
        + ("" if is_declared else " If both are different applications, run `pulumi up`."),
        location=compiled.application.at,
    )


def successors(
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


def renumbered(moved: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield the problems of `successors` as findings: one, not a missing topic and an orphaned one."""
    for problem in moved:
        yield Finding(
            kind=FindingKind.RENUMBERED,
            severity=problem.severity,
            application=part.application_id,
            topic=problem.topic,
            what=problem.summary,
            expected=problem.expected or "",
            found=problem.found or "",
            why=problem.why,
            fix=problem.fix,
            location=problem.location,
        )


def unavailable(problems: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for each problem of partitions without a leader or with replicas not in sync."""
    for problem in problems:
        if problem.code is ProblemCode.UNAVAILABLE_PARTITIONS:
            yield Finding(
                kind=FindingKind.UNAVAILABLE,
                severity=problem.severity,
                application=part.application_id,
                what=problem.summary,
                expected=problem.expected or "",
                found=problem.found or "",
                why=problem.why,
                fix=problem.fix,
                location=problem.location,
            )


def excess(problems: Sequence[Problem], part: ApplicationPlan) -> Iterator[Finding]:
    """Yield a finding for permissions with which an application could replace a lost topic."""
    for problem in problems:
        if problem.code is ProblemCode.EXCESS_PERMISSIONS:
            yield Finding(
                kind=FindingKind.ACL,
                severity=problem.severity,
                application=part.application_id,
                what=problem.summary,
                expected=problem.expected or "",
                found=problem.found or "",
                why=problem.why,
                fix=problem.fix,
                location=problem.location,
            )


def missing_acls(part: ApplicationPlan) -> Iterator[Finding]:
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


def former_ids(
    compiled: CompiledApplication, snapshot: ClusterSnapshot, declared: Collection[str]
) -> Sequence[str]:
    """Return other ids for which all internal topics of the application exist; none exists for its own."""
    names = [topic.name for topic in compiled.internal_topics]
    if not names or any(name in snapshot.topics for name in names):
        return ()
    left = snapshot.topics.keys() - declared
    tails = [name.removeprefix(prefix(compiled)) for name in names]
    first = f"-{tails[0]}"
    ids = sorted(name.removesuffix(first) for name in left if name.endswith(first))
    return [id_ for id_ in ids if id_ and all(f"{id_}-{tail}" in left for tail in tails)]
