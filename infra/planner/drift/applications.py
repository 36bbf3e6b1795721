"""An application that got another id: its topics exist, under the names of the old one."""

from collections.abc import Collection, Sequence

from infra.model.cluster import ClusterSnapshot
from infra.model.problems import Severity
from infra.planner.drift.findings import Finding, FindingKind
from infra.planner.drift.orphans import prefix
from infra.planner.plans import ApplicationPlan
from infra.planner.wording import counted


def renamed(part: ApplicationPlan, snapshot: ClusterSnapshot, declared: Collection[str]) -> Finding | None:
    """Return a finding when no topic of the application exists and all do under another id's names.

    `declared` are the topics that documents speak of: those are nobody else's left-overs.
    """
    compiled = part.compiled
    if compiled is None or part.recorded is not None or not compiled.internal_topics:
        return None
    names = [topic.name for topic in compiled.internal_topics]
    if any(name in snapshot.topics for name in names):
        return None
    former = _former(prefix(compiled), names, snapshot.topics.keys() - declared)
    if former is None:
        return None
    is_declared = compiled.application.renamed_from == former
    return Finding(
        kind=FindingKind.RENAMED,
        severity=Severity.WARNING,
        application=part.application_id,
        what=f"No internal topic of {part.application_id} exists; those of {former} are named alike."
        if not is_declared
        else f"The internal topics of {part.application_id} still have the names of {former}.",
        expected=f"{counted(len(names), 'topic')} that begin{'s' if len(names) == 1 else ''} with "
        f"{prefix(compiled)}",
        found=f"they begin with {former}-",
        why="Kafka Streams names internal topics after the application id: under a new id the application "
        "starts without the state and the offsets that it had.",
        fix=f"If it was renamed by mistake, go back to {former}. If it was meant, "
        + ("" if is_declared else f"declare `renamedFrom: {former}` and ")
        + "run `pulumi up`, which creates the new topics; rebuild the state from the source topics.",
        location=compiled.application.at,
    )


def _former(own: str, names: Sequence[str], left: Collection[str]) -> str | None:
    """Return the first id whose topics are complete."""
    tails = [name.removeprefix(own) for name in names]
    first = f"-{tails[0]}"
    ids = sorted(name.removesuffix(first) for name in left if name.endswith(first))
    for id_ in ids:
        if id_ and all(f"{id_}-{tail}" in left for tail in tails):
            return id_
    return None
