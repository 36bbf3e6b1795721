"""Records without a key that an explicit repartition drops (facts 2.2)."""

from collections.abc import Iterator

from infra.compiler.dsl.builder import Builder
from infra.compiler.dsl.declarations import WritesRepartition
from infra.compiler.dsl.graph import reachable
from infra.compiler.dsl.refusals import lint
from infra.compiler.dsl.topology import TopologyUnderConstruction
from infra.model.problems import Problem, ProblemCode, Severity


def dropped_null_keys(builder: Builder, _topology: TopologyUnderConstruction) -> Iterator[Problem]:
    """An explicit repartition filters null keys unless a join that takes them lies below (facts 2.2)."""
    for node in reachable(builder.graph.root):
        declares = node.declares
        if isinstance(declares, WritesRepartition) and declares.explicit and not node.keeps_null_keys:
            yield lint(
                ProblemCode.NULL_KEYS_DROPPED,
                f"`repartition` drops records without a key ({declares.topic}).",
                topic=declares.topic,
                node=declares.filter,
                expected="records with a key",
                found="a filter before the topic",
                why="Kafka Streams keeps null keys only where a left or outer join of streams, or a left "
                "join with a table, lies below.",
                at=node.at,
                fix="Give such records a key before, if they matter.",
                severity=Severity.INFO,
            )
