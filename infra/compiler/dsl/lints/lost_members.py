"""Co-partition groups that name what is no source (facts 2.4)."""

from collections.abc import Iterable, Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.refusals import lint
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Location, Problem, ProblemCode


def lost_members(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Names in groups that are no sources vanish; what is really read is not held to the others then."""
    for group, at in zip(builder.copartition_groups, builder.group_origins, strict=True):
        kept = _topics(topology, group)
        behind = {name: _topics(topology, _really_read(builder, topology, name)) for name in sorted(group)}
        lost = [name for name, topics in behind.items() if topics - kept]
        missing = {topic for name in lost for topic in behind[name]} - kept
        if missing and len(missing | kept) > 1:
            reasons = ", and ".join(builder.lost_sources[name].reason for name in lost)
            yield _lost(", ".join(lost), reasons, missing, kept, at)


def _really_read(builder: Builder, topology: TopologyUnderConstruction, name: str) -> set[str]:
    """The sources behind a name that is none, also through several such names; empty for a source."""
    found: set[str] = set()
    pending, seen = [name], {name}
    while pending:
        each = pending.pop()
        each = builder.renamed_sources.get(each, each)
        if topology.is_source(each):
            found.add(each)
        elif each in builder.lost_sources:
            behind = builder.lost_sources[each].instead - seen
            seen |= behind
            pending.extend(behind)
    return found - {name}


def _topics(topology: TopologyUnderConstruction, sources: Iterable[str]) -> set[str]:
    return {topic for source in sources for topic in topology.topics_read(source)}


def _lost(names: str, reasons: str, missing: set[str], kept: set[str], at: Location | None) -> Problem:
    topics = sorted(missing)
    return lint(
        ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
        f"A join does not hold {', '.join(topics)} to the partition count of its other side.",
        topic=topics[0],
        node=names,
        expected="co-partitioned: " + ", ".join(sorted(missing | kept)),
        found="co-partitioned: " + (", ".join(sorted(kept)) or "nothing"),
        why=f"{reasons}. Kafka Streams drops such names from a group in silence; with unequal counts records "
        "that belong together land in different tasks and are not joined.",
        at=at,
        fix="Keep the counts equal yourself, or `repartition` with an explicit count before it.",
    )
