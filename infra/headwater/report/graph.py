"""The graph that all pictures of a topology show, and its texts for Mermaid and Graphviz.

It has topics, sub-topologies, and what reads and writes them.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum

import attrs

from headwater.model.compiled import CompiledApplication, InternalTopic, SubTopology, TopicKind
from headwater.planner.phrases import counted
from headwater.report.markdown import printable


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
    def count_text(self) -> str:
        """Return the partition count as `6 partitions`; empty if it is not known."""
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


def parallelism_text(part: SubTopology) -> str:
    """Return the number of tasks or processors in words; without sources of known size it is unknown."""
    if part.is_global:
        return "on every instance"
    if not part.tasks:
        return "number of tasks not known"
    if part.processors is not None:
        return f"{counted(part.processors, 'processor')} for {counted(part.tasks, 'partition')}"
    return counted(part.tasks, "task")


def build_graph(compiled: Sequence[CompiledApplication], partitions: Mapping[str, int]) -> Graph:
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
        parallelism=parallelism_text(part),
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


_FILLS = {
    Role.SOURCE: "#e2e8f0",
    Role.PATTERN: "#e2e8f0",
    Role.REPARTITION: "#bfdbfe",
    Role.FK_SUBSCRIPTION: "#ddd6fe",
    Role.CHANGELOG: "#fde68a",
    Role.SINK: "#bbf7d0",
}
_STROKES = {
    Role.SOURCE: "#64748b",
    Role.PATTERN: "#64748b",
    Role.REPARTITION: "#2563eb",
    Role.FK_SUBSCRIPTION: "#7c3aed",
    Role.CHANGELOG: "#d97706",
    Role.SINK: "#16a34a",
}
_TEXT_COLOR = "#0f172a"
_DASHED = (Role.PATTERN,)


def mermaid_text(graph: Graph) -> str:
    """Return a `flowchart`; ids are numbers, because names may contain characters of Mermaid's syntax."""
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _mermaid_lines(graph)), ""])


def _mermaid_lines(graph: Graph) -> Iterator[str]:
    topics = {name: f"t{number}" for number, name in enumerate(graph.topics)}
    parts = {(part.application, part.id): f"s{number}" for number, part in enumerate(graph.parts)}
    for name, topic in graph.topics.items():
        yield f"{topics[name]}([{_mermaid_label(topic)}]):::{_mermaid_class(topic.role)}"
    for number, application in enumerate(dict.fromkeys(part.application for part in graph.parts)):
        yield f"subgraph a{number}[{_quote_mermaid(application)}]"
        for part in graph.parts:
            if part.application == application:
                yield from (f"  {line}" for line in _mermaid_part(part, parts[application, part.id]))
        yield "end"
    for part in graph.parts:
        yield from _mermaid_edges(part, parts[part.application, part.id], topics)
    used = {topic.role for topic in graph.topics.values()} | {Role.CHANGELOG}
    yield from (f"classDef {_mermaid_class(role)} {_mermaid_style(role)}" for role in Role if role in used)


def _mermaid_style(role: Role) -> str:
    dashes = ",stroke-dasharray:4" if role in _DASHED else ""
    return f"fill:{_FILLS[role]},stroke:{_STROKES[role]},color:{_TEXT_COLOR}{dashes}"


def _mermaid_part(part: PartBox, node: str) -> Iterator[str]:
    yield f"{node}[{_quote_mermaid(part.title, part.parallelism)}]"
    for number, store in enumerate(part.stores):
        if store.changelog is None:
            yield f"{node}c{number}[({_quote_mermaid(store.name, 'no changelog of its own')})]"
        else:
            yield f"{node}c{number}[({_mermaid_label(store.changelog)})]:::{_mermaid_class(Role.CHANGELOG)}"
        yield f"{node} -.- {node}c{number}"


def _mermaid_edges(part: PartBox, node: str, topics: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{topics[topic]} --> {node}" for topic in part.reads)
    yield from (f"{node} --> {topics[topic]}" for topic in part.writes)


def _mermaid_label(topic: TopicBox) -> str:
    return _quote_mermaid(topic.label, topic.count_text)


def _mermaid_class(role: Role) -> str:
    return role.value.replace("-", "")


def _quote_mermaid(*lines: str) -> str:
    """Quote a label; entities begin with `#` in Mermaid, not with `&` as in HTML."""
    escaped = (_escape_mermaid(printable(line)) for line in lines if line)
    return '"' + "<br/>".join(escaped) + '"'


def _escape_mermaid(text: str) -> str:
    return (
        text.replace("#", "#35;")
        .replace("&", "#amp;")
        .replace('"', "#quot;")
        .replace("<", "#lt;")
        .replace(">", "#gt;")
    )


def dot_text(graph: Graph) -> str:
    """Return a `digraph` whose node ids are topic names and `application/sub-topology id`."""
    return "\n".join(["digraph headwater {", *(f"  {line}" for line in _dot_lines(graph)), "}", ""])


def _dot_lines(graph: Graph) -> Iterator[str]:
    yield "rankdir=LR"
    yield 'node [fontname="Helvetica,Arial,sans-serif" fontsize=11]'
    for topic in graph.topics.values():
        yield f'{_quote_dot(topic.name)} [shape=box style="rounded,filled" {_dot_topic(topic)}]'
    for application in dict.fromkeys(part.application for part in graph.parts):
        yield f"subgraph {_quote_dot(f'cluster {application}')} {{"
        yield f"  label={_quote_dot(application)}"
        for part in graph.parts:
            if part.application == application:
                yield from (f"  {line}" for line in _dot_part(part))
        yield "}"
    for part in graph.parts:
        yield from (f"{_quote_dot(topic)} -> {_dot_id(part)}" for topic in part.reads)
        yield from (f"{_dot_id(part)} -> {_quote_dot(topic)}" for topic in part.writes)


def _dot_part(part: PartBox) -> Iterator[str]:
    yield f"{_dot_id(part)} [shape=box label={_quote_dot(part.title, part.parallelism)}]"
    for store in part.stores:
        yield from _dot_store(part, store)


def _dot_store(part: PartBox, store: StoreBox) -> Iterator[str]:
    if store.changelog is None:
        node = _quote_dot(f"{part.application}/{part.id}/{store.name}")
        yield f"{node} [shape=cylinder label={_quote_dot(store.name, 'no changelog of its own')}]"
    else:
        node = _quote_dot(store.changelog.name)
        yield f"{node} [shape=cylinder style=filled {_dot_topic(store.changelog)}]"
    yield f"{_dot_id(part)} -> {node} [dir=both style=dashed]"


def _dot_topic(topic: TopicBox) -> str:
    return f'fillcolor="{_FILLS[topic.role]}" label={_quote_dot(topic.label, topic.count_text)}'


def _dot_id(part: PartBox) -> str:
    return _quote_dot(f"{part.application}/{part.id}")


def _quote_dot(*lines: str) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return '"' + "\\n".join(escaped) + '"'
