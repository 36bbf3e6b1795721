"""The value that the compiler's passes take and return."""

from collections.abc import Iterable, Mapping

import attrs

from headwater.compiler.assignor_counts import TopicGraph
from headwater.compiler.streams_config import StreamsConfig
from headwater.compiler.topic_groups import Naming, Sources, TopicGroup
from headwater.model.nodes import NodeTopology, RepartitionTopic
from headwater.model.problems import PLAN, Caller, Problem
from headwater.model.topology import Application, DocumentForm

NO_SOURCES = Sources({})
EMPTY_TOPIC_GRAPH = TopicGraph.from_groups((), {})


@attrs.frozen
class Compilation:
    """The state of a compilation; each pass returns a copy with more fields set.

    `partitions`: topic → partition count on the cluster. `counts`: topic → count of all topics that the
    application reads, including repartition topics, as far as decided. `tasks`: sub-topology id → number of
    tasks. `following`: managed sink topics of any document whose count follows their writers. `form`: where
    the document has its topology from.
    """

    application: Application
    config: StreamsConfig
    topology: NodeTopology
    naming: Naming
    partitions: Mapping[str, int]
    following: frozenset[str] = frozenset()
    caller: Caller = PLAN
    form: DocumentForm = DocumentForm.CALLS
    sources: Sources = NO_SOURCES
    groups: tuple[TopicGroup, ...] = ()
    copartitioned: tuple[frozenset[str], ...] = ()
    topic_graph: TopicGraph = EMPTY_TOPIC_GRAPH
    counts: Mapping[str, int] = attrs.field(factory=dict)
    tasks: Mapping[int, int] = attrs.field(factory=dict)
    problems: tuple[Problem, ...] = ()

    @property
    def repartition(self) -> Mapping[str, RepartitionTopic]:
        """Return full name → details of the repartition topics that are read."""
        return {
            topic: details
            for group in self.topic_graph.groups
            for topic, details in group.repartition.items()
        }

    def with_problems(self, problems: Iterable[Problem]) -> "Compilation":
        """Return a copy with further problems."""
        return attrs.evolve(self, problems=(*self.problems, *problems))


def tasks_of(groups: Iterable[TopicGroup], counts: Mapping[str, int]) -> dict[int, int]:
    """Return sub-topology id → number of tasks, the largest partition count of its sources.

    Sub-topologies with an undecided source are omitted.
    """
    return {
        group.id: max(counts[topic] for topic in group.sources)
        for group in groups
        if group.sources and not group.is_global and all(topic in counts for topic in group.sources)
    }
