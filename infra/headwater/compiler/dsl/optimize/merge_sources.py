"""Merges sources with the same topics or the same pattern (always; facts 2.6)."""

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.declarations import SourceDeclaration
from headwater.compiler.dsl.graph import GraphNode
from headwater.compiler.dsl.problems import topology_error
from headwater.model.problems import Problem


def merge_sources(builder: Builder) -> None:
    """Move the children of duplicate sources to the first source (`mergeDuplicateSourceNodes`)."""
    by_pattern: dict[str, GraphNode] = {}
    by_topic: dict[str, GraphNode] = {}
    for node in tuple(builder.graph.root.children):
        declares = node.declares
        if not isinstance(declares, SourceDeclaration):
            continue
        if declares.pattern is not None:
            first = by_pattern.setdefault(declares.pattern, node)
            if first is not node:
                _merge(builder, first, node)
            continue
        firsts = {by_topic.setdefault(topic, node): topic for topic in dict.fromkeys(declares.topics)}
        firsts.pop(node, None)
        for first, topic in firsts.items():
            if set(_source(first).topics) == set(declares.topics):
                _merge(builder, first, node)
            else:
                builder.reject(_overlap(first, node, topic))
                _move_children(builder, first, node)


def _merge(builder: Builder, first: GraphNode, node: GraphNode) -> None:
    resets = (_source(first).offset_reset, _source(node).offset_reset)
    if resets[0] != resets[1]:
        builder.reject(_resets_differ(first, node))
    _move_children(builder, first, node)
    builder.note_non_source(
        node.name,
        f"{node.name} reads the same topics as {first.name} and is merged into it",
        frozenset({first.name}),
    )


def _move_children(builder: Builder, first: GraphNode, node: GraphNode) -> None:
    for child in tuple(node.children):
        node.remove_child(child)
        first.add_child(child)
    builder.graph.root.remove_child(node)


def _source(node: GraphNode) -> SourceDeclaration:
    assert isinstance(node.declares, SourceDeclaration)  # noqa: S101 - only sources come here
    return node.declares


def _overlap(first: GraphNode, node: GraphNode, topic: str) -> Problem:
    return topology_error(
        f"Two streams read overlapping but not equal sets of topics, {first.name} and {node.name}.",
        node=node.name,
        topic=topic,
        expected="equal sets, or sets without a common topic",
        found=f"[{', '.join(_source(first).topics)}] and [{', '.join(_source(node).topics)}]",
        at=node.at,
        fix="Read each topic by a stream of its own and `merge` where needed.",
    )


def _resets_differ(first: GraphNode, node: GraphNode) -> Problem:
    return topology_error(
        f"Two streams of the same topics have different offset reset policies, {first.name} and {node.name}.",
        node=node.name,
        topic=", ".join(_source(node).topics) or _source(node).pattern,
        expected=f"{_source(first).offset_reset or 'none given'} (as {first.name})",
        found=_source(node).offset_reset or "none given",
        at=node.at,
        fix="Give both the same `offsetReset`.",
    )
