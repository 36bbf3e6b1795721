"""Renders a node topology as short lines, for golden files."""

from collections.abc import Iterator

from headwater.model.nodes import Node, NodeTopology, ProcessorNode, SourceNode, StateStore
from headwater.model.problems import Problem


def rendered(nodes: NodeTopology) -> str:
    return "".join(f"{line}\n" for line in _lines(nodes))


def _lines(nodes: NodeTopology) -> Iterator[str]:
    for node in nodes.nodes:
        yield _node(node) + (" (global)" if node.name in nodes.global_nodes else "")
    for store in nodes.stores:
        yield _store(store)
    for topic in nodes.repartition_topics:
        kind = "foreign key" if topic.is_foreign_key else "repartition"
        yield f"{kind} {topic.name}" + (f" = {topic.partitions}" if topic.partitions is not None else "")
    for group in nodes.copartition_groups:
        yield "copartitioned " + ", ".join(sorted(group))
    if nodes.generated_names:
        yield "generated " + ", ".join(sorted(nodes.generated_names))
    for problem in nodes.problems:
        yield from _problem(problem)


def _node(node: Node) -> str:
    if isinstance(node, SourceNode):
        return f"{node.name} reads {node.pattern if node.pattern is not None else ', '.join(node.topics)}"
    line = f"{node.name} < {', '.join(node.parents)}"
    if isinstance(node, ProcessorNode):
        return line + (f" [{', '.join(node.stores)}]" if node.stores else "")
    return f"{line} writes {node.topic if node.topic is not None else node.extractor}"


def _store(store: StateStore) -> str:
    parts = [f"store {store.name}: {store.kind.value}"]
    if store.base_ms is not None:
        parts.append(f"{store.base_ms} ms")
    if store.changelog_topic is not None:
        parts.append(f"changelog {store.changelog_topic}")
    elif not store.logged:
        parts.append("not logged")
    parts += [f"{key}={value}" for key, value in store.overrides.items()]
    parts += ["connected " + " ".join(sorted(processors)) for processors in store.connections]
    return ", ".join(parts)


def _problem(problem: Problem) -> Iterator[str]:
    where = f" (line {problem.location.line})" if problem.location is not None else ""
    yield f"{problem.severity.value.upper()} {problem.code}{where}: {problem.summary}"
    for label, text in (
        ("topic", problem.topic),
        ("node", problem.node),
        ("expected", problem.expected),
        ("found", problem.found),
        ("why", problem.why),
        ("fix", problem.fix),
    ):
        if text:
            yield f"    {label}: {text}"
