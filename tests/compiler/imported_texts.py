"""Imports texts that Kafka Streams prints."""

from headwater.compiler import build_nodes, compile_document
from headwater.compiler.described import complete_topology
from headwater.describe import read_description, write_description
from headwater.model.cluster import ClusterSnapshot, LiveTopic
from headwater.model.compiled import CompiledApplication
from headwater.model.problems import Location, Problem, ProblemCode
from headwater.model.topology import Application, DescribedTopology, TopologyDocument
from tests.compiler.applications import document

AT = Location("app.txt")
AGGREGATION = "topology: [{stream: {topic: in}}, {groupBy: {name: by}}, {count: {materialized: counts}}]"
JOINS = """
topology:
  - stream: {topic: a}
  - selectKey: {key: x, as: a}
  - stream: {topic: b, as: b}
  - join: {from: a, with: b, window: {difference: 1h}, name: ab, storeName: s, as: ab}
  - table: {topic: c, as: c}
  - leftJoin: {from: ab, with: c, name: abc}
"""
STORES = ("s-this-join-store", "s-other-join-store")
"""The stores of the join of streams in `JOINS`."""


def imported(text: str, **details: object) -> DescribedTopology:
    """Return the description that Kafka Streams prints for the document `text`, read back."""
    nodes, problems = read_description(write_description(build_nodes(document(text))))
    assert problems == ()
    return DescribedTopology(nodes, AT, **details)  # type: ignore[arg-type]


def missing_details(described: DescribedTopology) -> tuple[Problem, ...]:
    """Return the problems of missing details."""
    return tuple(p for p in complete_topology(described).problems if p.code is ProblemCode.MISSING_DETAIL)


def compile_described(
    described: DescribedTopology, partitions: dict[str, int], config: dict[str, str] | None = None
) -> CompiledApplication:
    application = Application("app", AT, config=config or {})
    return compile_document(TopologyDocument(application, described=described), partitions)


def cluster(application: CompiledApplication, sources: dict[str, int], **changed: int) -> ClusterSnapshot:
    """Return a cluster with the application's internal topics."""
    topics = {name: LiveTopic(name, name, count, 1) for name, count in sources.items()}
    for internal in application.internal_topics:
        short = internal.name.removeprefix("app-")
        topics[internal.name] = LiveTopic(
            internal.name, internal.name, changed.get(short, internal.partitions), 1, internal.config
        )
    return ClusterSnapshot("c", 1, topics, described=frozenset(topics))
