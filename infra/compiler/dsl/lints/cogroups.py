"""Cogroups that co-partition what is repartitioned anyway (facts 0.1, item 5)."""

from collections.abc import Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.refusals import lint
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Problem, ProblemCode


def cogroups_of_sources(builder: Builder, topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """One for each cogroup that names sources from before a repartition."""
    for store, group, at in builder.cogroups_of_sources:
        topics = sorted({topic for source in group for topic in topology.topics_read(source)})
        yield lint(
            ProblemCode.COGROUP_COPARTITIONS_SOURCES,
            "`cogroup` demands equal partition counts of topics that are repartitioned before it.",
            node=store,
            expected="equal counts of the repartition topics",
            found="equal counts of the sources: " + ", ".join(topics),
            why="Kafka Streams registers the sources from before the repartition as co-partitioned. With "
            "unequal counts the application fails; under the streams protocol it cannot start at all.",
            at=at,
            fix="Call `repartition` on the inputs before grouping: then their own topics form the group.",
        )
