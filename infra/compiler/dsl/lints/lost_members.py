"""Co-partition groups that name what is no source (facts 2.4)."""

from collections.abc import Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.refusals import lint
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Problem, ProblemCode


def lost_members(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """Names in groups that are no sources vanish; the topic really read is not held to the others then."""
    for group, at in zip(builder.copartition_groups, builder.group_origins, strict=True):
        for name in sorted(group):
            lost = builder.lost_sources.get(name)
            if lost is None or topology.is_source(name):
                continue
            instead = {builder.renamed_sources.get(each, each) for each in lost.instead}
            if instead <= group:
                continue
            kept = sorted({topic for source in group for topic in topology.source_topics(source)})
            missing = sorted(
                {topic for source in instead for topic in topology.source_topics(source)} - set(kept)
            )
            if not missing:
                continue
            yield lint(
                ProblemCode.COPARTITION_GROUP_LOST_MEMBER,
                "A join does not hold " + ", ".join(missing) + " to the partition count of its other side.",
                topic=missing[0],
                node=name,
                expected="co-partitioned: " + ", ".join(sorted({*kept, *missing})),
                found="co-partitioned: " + (", ".join(kept) or "nothing"),
                why=f"{lost.reason}. Kafka Streams drops the name from the group in silence; with unequal "
                "counts records that belong together land in different tasks and are not joined.",
                at=at,
                fix="Keep the counts equal yourself, or `repartition` with an explicit count before it.",
            )
