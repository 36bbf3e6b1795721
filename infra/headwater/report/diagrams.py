"""Draws topologies as text: for Mermaid and Graphviz."""

from collections.abc import Iterator, Mapping

from headwater.report.escaping import printable
from headwater.report.graph import Graph, PartBox, Role, StoreBox, TopicBox

_STYLES = {
    Role.SOURCE: "fill:#e2e8f0,stroke:#64748b,color:#0f172a",
    Role.PATTERN: "fill:#e2e8f0,stroke:#64748b,color:#0f172a,stroke-dasharray:4",
    Role.REPARTITION: "fill:#bfdbfe,stroke:#2563eb,color:#0f172a",
    Role.FK_SUBSCRIPTION: "fill:#ddd6fe,stroke:#7c3aed,color:#0f172a",
    Role.CHANGELOG: "fill:#fde68a,stroke:#d97706,color:#0f172a",
    Role.SINK: "fill:#bbf7d0,stroke:#16a34a,color:#0f172a",
}


def mermaid(graph: Graph) -> str:
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
    yield from (f"classDef {_mermaid_class(role)} {style}" for role, style in _STYLES.items() if role in used)


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
    return _quote_mermaid(topic.label, topic.count)


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
    return f'fillcolor="{_COLORS[topic.role]}" label={_quote_dot(topic.label, topic.count)}'


def _dot_id(part: PartBox) -> str:
    return _quote_dot(f"{part.application}/{part.id}")


def _quote_dot(*lines: str) -> str:
    escaped = (printable(line).replace("\\", "\\\\").replace('"', '\\"') for line in lines if line)
    return '"' + "\\n".join(escaped) + '"'
