"""The graph of topologies in Mermaid's language, which GitHub and GitLab render in comments and documents."""

from collections.abc import Iterator, Mapping

from headwater.report.graph import Graph, PartBox, Role, TopicBox
from headwater.report.printable import printable

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
    return "\n".join(["flowchart LR", *(f"  {line}" for line in _body(graph)), ""])


def _body(graph: Graph) -> Iterator[str]:
    topics = {name: f"t{number}" for number, name in enumerate(graph.topics)}
    parts = {(part.application, part.id): f"s{number}" for number, part in enumerate(graph.parts)}
    for name, topic in graph.topics.items():
        yield f"{topics[name]}([{_label(topic)}]):::{_class(topic.role)}"
    for number, application in enumerate(dict.fromkeys(part.application for part in graph.parts)):
        yield f"subgraph a{number}[{_quoted(application)}]"
        for part in graph.parts:
            if part.application == application:
                yield from (f"  {line}" for line in _part(part, parts[application, part.id]))
        yield "end"
    for part in graph.parts:
        yield from _edges(part, parts[part.application, part.id], topics)
    used = {topic.role for topic in graph.topics.values()} | {Role.CHANGELOG}
    yield from (f"classDef {_class(role)} {style}" for role, style in _STYLES.items() if role in used)


def _part(part: PartBox, node: str) -> Iterator[str]:
    yield f"{node}[{_quoted(part.title, part.parallelism)}]"
    for number, store in enumerate(part.stores):
        if store.changelog is None:
            yield f"{node}c{number}[({_quoted(store.name, 'no changelog of its own')})]"
        else:
            yield f"{node}c{number}[({_label(store.changelog)})]:::{_class(Role.CHANGELOG)}"
        yield f"{node} -.- {node}c{number}"


def _edges(part: PartBox, node: str, topics: Mapping[str, str]) -> Iterator[str]:
    yield from (f"{topics[topic]} --> {node}" for topic in part.reads)
    yield from (f"{node} --> {topics[topic]}" for topic in part.writes)


def _label(topic: TopicBox) -> str:
    return _quoted(topic.label, topic.count)


def _class(role: Role) -> str:
    return role.value.replace("-", "")


def _quoted(*lines: str) -> str:
    """Quote a label; entities begin with `#` in Mermaid, not with `&` as in HTML."""
    escaped = (_escaped(printable(line)) for line in lines if line)
    return '"' + "<br/>".join(escaped) + '"'


def _escaped(text: str) -> str:
    return (
        text.replace("#", "#35;")
        .replace("&", "#amp;")
        .replace('"', "#quot;")
        .replace("<", "#lt;")
        .replace(">", "#gt;")
    )
