"""The graph that all pictures of a topology show: topics, sub-topologies, and what reads and writes them."""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import attrs

from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology, TopicKind
from headwater.planner.phrases import counted


class Role(Enum):
    """The role of a topic in the applications drawn."""

    SOURCE = "source"
    PATTERN = "pattern"
    REPARTITION = "repartition"
    FK_SUBSCRIPTION = "fk-subscription"
    CHANGELOG = "changelog"
    SINK = "sink"


@attrs.frozen
class TopicBox:
    """A topic; `label` is its name without the application id, `partitions` is None if not known."""

    name: str
    label: str
    role: Role
    partitions: int | None

    @property
    def count(self) -> str:
        return "" if self.partitions is None else counted(self.partitions, "partition")


@attrs.frozen
class StoreBox:
    """A store; `changelog` is None if it has no changelog topic or is restored from a source topic."""

    name: str
    changelog: TopicBox | None


@attrs.frozen
class PartBox:
    """A sub-topology: `reads` and `writes` are keys of `Graph.topics`."""

    application: str
    id: int
    parallelism: str
    nodes: tuple[str, ...]
    stores: tuple[StoreBox, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    is_global: bool
    is_known: bool = True
    """False for the one box that represents an observed application, whose sub-topologies are not known."""

    @property
    def title(self) -> str:
        if not self.is_known:
            return "topology not known"
        return f"{'global sub-topology' if self.is_global else 'sub-topology'} {self.id}"


@attrs.frozen
class Graph:
    """The sub-topologies of an application and the topics between them.

    `topics` are by name; changelog topics are in the stores of `parts`. A source pattern counts as a topic.
    """

    parts: tuple[PartBox, ...]
    topics: Mapping[str, TopicBox]


def parallelism(part: SubTopology) -> str:
    """Return the number of tasks or processors in words; without sources of known size it is unknown."""
    if part.is_global:
        return "on every instance"
    if not part.tasks:
        return "number of tasks not known"
    if part.processors is not None:
        return f"{counted(part.processors, 'processor')} for {counted(part.tasks, 'partition')}"
    return counted(part.tasks, "task")


def graph(compiled: Sequence[CompiledApplication], partitions: Mapping[str, int]) -> Graph:
    """Return one graph of all applications; `partitions` are known counts of topics that they do not own."""
    internal = {topic.name: topic for application in compiled for topic in application.internal_topics}
    known = {**partitions, **{s.topic: s.partitions for c in compiled for s in c.sinks if s.partitions}}
    parts = tuple(part for application in compiled for part in _part_boxes(application, internal))
    topics: dict[str, TopicBox] = {}
    for part in parts:
        for name in part.reads:
            topics.setdefault(name, _topic_box(name, internal, known, part))
        for name in part.writes:
            topics.setdefault(name, _topic_box(name, internal, known, part))
    written = {name for part in parts for name in part.writes}
    read = {name for part in parts for name in part.reads}
    return Graph(
        parts,
        {
            name: attrs.evolve(box, role=Role.SINK)
            if box.role is Role.SOURCE and name in written - read
            else box
            for name, box in topics.items()
        },
    )


def _part_boxes(application: CompiledApplication, internal: Mapping[str, InternalTopic]) -> Iterator[PartBox]:
    if application.is_observed:
        yield _observed_box(application)
    for part in application.subtopologies:
        yield _part_box(application, part, internal)


def _observed_box(application: CompiledApplication) -> PartBox:
    id_, topics = application.application.id, application.internal_topics
    others = tuple(topic.name for topic in topics if topic.kind is not TopicKind.CHANGELOG)
    return PartBox(
        application=id_,
        id=0,
        parallelism="as observed",
        nodes=(),
        stores=tuple(
            StoreBox(t.node, TopicBox(t.name, _label_of(t.name, id_), Role.CHANGELOG, t.partitions))
            for t in topics
            if t.kind is TopicKind.CHANGELOG
        ),
        reads=(*application.external_sources, *others),
        writes=others,
        is_global=False,
        is_known=False,
    )


def _part_box(
    application: CompiledApplication, part: SubTopology, internal: Mapping[str, InternalTopic]
) -> PartBox:
    patterns = tuple(f"/{pattern}/" for pattern in part.source_patterns)
    return PartBox(
        application=application.application.id,
        id=part.id,
        parallelism=parallelism(part),
        nodes=part.nodes,
        stores=tuple(_store_boxes(application.application.id, part, internal)),
        reads=(*patterns, *part.sources),
        writes=part.sinks,
        is_global=part.is_global,
    )


def _store_boxes(
    application_id: str, part: SubTopology, internal: Mapping[str, InternalTopic]
) -> Iterator[StoreBox]:
    owned = {internal[name].node: name for name in part.changelog_topics if name in internal}
    for store in part.stores:
        # A changelog whose count is not known is not in `internal`.
        name = owned.get(store, f"{application_id}-{store}-changelog")
        partitions = internal[name].partitions if name in internal else None
        box = TopicBox(name, _label_of(name, application_id), Role.CHANGELOG, partitions)
        yield StoreBox(store, box if name in part.changelog_topics else None)


def _topic_box(
    name: str, internal: Mapping[str, InternalTopic], known: Mapping[str, int], part: PartBox
) -> TopicBox:
    topic = internal.get(name)
    if topic is not None:
        role = Role.FK_SUBSCRIPTION if topic.kind is TopicKind.FK_SUBSCRIPTION else Role.REPARTITION
        return TopicBox(name, _label_of(name, part.application), role, topic.partitions)
    if name.startswith("/"):
        return TopicBox(name, name.strip("/"), Role.PATTERN, None)
    return TopicBox(name, name, Role.SOURCE, known.get(name))


def _label_of(name: str, application_id: str) -> str:
    return name.removeprefix(f"{application_id}-")
