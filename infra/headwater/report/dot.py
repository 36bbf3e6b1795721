"""The graph of topologies in the DOT language of Graphviz."""

from collections.abc import Iterator

from headwater.report.graph import Graph, PartBox, Role, StoreBox, TopicBox
from headwater.report.printable import printable

_COLORS = {
    Role.SOURCE: "#e2e8f0",
    Role.PATTERN: "#e2e8f0",
    Role.REPARTITION: "#bfdbfe",
    Role.FK_SUBSCRIPTION: "#ddd6fe",
    Role.CHANGELOG: "#fde68a",
    Role.SINK: "#bbf7d0",
}


def dot(graph: Graph) -> str:
    """Return a `digraph` whose node ids are topic names and `application/sub-topology id`."""
    return "\n".join(["digraph headwater {", *(f"  {line}" for line in _body(graph)), "}", ""])


def _body(graph: Graph) -> Iterator[str]:
    yield "rankdir=LR"
    yield 'node [fontname="Helvetica,Arial,sans-serif" fontsize=11]'
    for topic in graph.topics.values():
        yield f'{_quoted(topic.name)} [shape=box style="rounded,filled" {_topic(topic)}]'
    for application in dict.fromkeys(part.application for part in graph.parts):
        yield f"subgraph {_quoted(f'cluster {application}')} {{"
        yield f"  label={_quoted(application)}"
        for part in graph.parts:
            if part.application == application:
                yield from (f"  {line}" for line in _part(part))
        yield "}"
    for part in graph.parts:
        yield from (f"{_quoted(topic)} -> {_id(part)}" for topic in part.reads)
        yield from (f"{_id(part)} -> {_quoted(topic)}" for topic in part.writes)


def _part(part: PartBox) -> Iterator[str]:
    yield f"{_id(part)} [shape=box label={_quoted(part.title, part.parallelism)}]"
    for store in part.stores:
        yield from _store(part, store)


def _store(part: PartBox, store: StoreBox) -> Iterator[str]:
    if store.changelog is None:
        node = _quoted(f"{part.application}/{part.id}/{store.name}")
        yield f"{node} [shape=cylinder label={_quoted(store.name, 'no changelog of its own')}]"
    else:
        node = _quoted(store.changelog.name)
        yield f"{node} [shape=cylinder style=filled {_topic(store.changelog)}]"
    yield f"{_id(part)} -> {node} [dir=both style=dashed]"


def _topic(topic: TopicBox) -> str:
    return f'fillcolor="{_COLORS[topic.role]}" label={_quoted(topic.label, topic.count)}'


def _id(part: PartBox) -> str:
    return _quoted(f"{part.application}/{part.id}")


def _quoted(*lines: str) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return '"' + "\\n".join(escaped) + '"'
