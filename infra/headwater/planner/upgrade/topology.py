"""Changes of a topology between two versions: nodes, sub-topologies, co-partitioning, errors."""

from collections.abc import Iterator, Sequence

from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Problem, Severity, errors
from headwater.planner.phrases import listed
from headwater.planner.upgrade.changes import Change, ChangeKind
from headwater.planner.upgrade.topics import Versions

_MOST = 12
"""Names in one phrase; the others are counted."""


def topology_changes(versions: Versions) -> Iterator[Change]:
    """Yield the changes of the topology itself."""
    yield from _copartitioning(versions)
    yield from _subtopologies(versions)
    yield from _nodes(versions)


def refusals(versions: Versions) -> Iterator[Change]:
    """Yield the errors that only one of the versions has."""
    before, after = errors(versions.before.problems), errors(versions.after.problems)
    for problem in _without(after, before):
        yield Change(
            kind=ChangeKind.REFUSED,
            severity=Severity.ERROR,
            topic=problem.topic,
            what=problem.summary,
            before="accepted",
            after=f"error {problem.code}",
            why=problem.why,
            first=problem.fix,
            location=problem.location,
        )
    for problem in _without(before, after):
        yield Change(
            kind=ChangeKind.ACCEPTED,
            severity=Severity.INFO,
            topic=problem.topic,
            what=f"No longer an error: {problem.summary}",
            before=f"error {problem.code}",
            after="accepted",
            why="The later version does not have this restriction.",
            first="Nothing.",
            location=problem.location,
        )


def is_one_group(versions: Versions) -> bool:
    """Return whether instances of both versions have the same tasks with the same topics and stores."""
    return _tasks(versions.before) == _tasks(versions.after)


def _tasks(compiled: CompiledApplication) -> frozenset[tuple[object, ...]]:
    # User topics that are written do not concern tasks.
    sinks = compiled.repartition_sinks
    return frozenset(
        (part.id, part.sources, part.source_patterns, sinks[part.id], part.stores, part.changelog_topics)
        for part in compiled.subtopologies
    )


def _without(problems: Sequence[Problem], others: Sequence[Problem]) -> list[Problem]:
    known = {(problem.code, problem.summary) for problem in others}
    return [problem for problem in problems if (problem.code, problem.summary) not in known]


def _copartitioning(versions: Versions) -> Iterator[Change]:
    before, after = (set(each.copartition_groups) for each in (versions.before, versions.after))
    if before != after:
        yield Change(
            kind=ChangeKind.COPARTITIONING,
            severity=Severity.WARNING,
            what="Other topics must have the same number of partitions.",
            before=_groups(before - after),
            after=_groups(after - before),
            why="Kafka Streams refuses topics of a group that have different partition counts.",
            first="Check that the topics of each group have the same number of partitions.",
            location=versions.after.application.at,
        )


def _groups(groups: set[tuple[str, ...]]) -> str:
    return "; ".join(sorted(" = ".join(group) for group in groups)) or "no other group"


def _subtopologies(versions: Versions) -> Iterator[Change]:
    before, after = versions.before.subtopologies, versions.after.subtopologies
    if is_one_group(versions):
        return
    yield Change(
        kind=ChangeKind.SUBTOPOLOGIES,
        severity=Severity.WARNING,
        what="The sub-topologies are others, so tasks have other ids, topics or stores.",
        before=_number(len(before)),
        after=_number(len(after)),
        why="An instance that gets a task of another version processes other topics with it. Local state "
        "that belongs to another task is restored again.",
        first="Stop all instances before you start the first one with the new version, and delete their "
        "local state.",
        location=versions.after.application.at,
    )


def _number(parts: int) -> str:
    return "1 sub-topology" if parts == 1 else f"{parts} sub-topologies"


def _nodes(versions: Versions) -> Iterator[Change]:
    before, after = _names(versions.before), _names(versions.after)
    if before == after:
        return
    yield Change(
        kind=ChangeKind.NODES,
        severity=Severity.INFO,
        what="Nodes of the topology have other names.",
        before=_shown(before - after),
        after=_shown(after - before),
        why="Names of nodes are in metrics, logs and `Topology#describe()`, not in data.",
        first="Change dashboards and alerts that name these nodes.",
        location=versions.after.application.at,
    )


def _names(compiled: CompiledApplication) -> frozenset[str]:
    return frozenset(name for part in compiled.subtopologies for name in part.nodes)


def _shown(names: frozenset[str]) -> str:
    shown = sorted(names)[:_MOST]
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    return f"{listed(shown)}{more}" if shown else "none of these"
