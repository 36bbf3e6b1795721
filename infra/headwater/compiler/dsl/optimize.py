"""Optimizations of the graph, in the order of `InternalStreamsBuilder#buildAndOptimizeTopology`."""

from collections import defaultdict
from collections.abc import Callable, Iterator

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.declarations import (
    RepartitionDeclaration,
    SelfJoinDeclaration,
    SourceDeclaration,
    StreamJoinDeclaration,
)
from headwater.compiler.dsl.graph import GraphNode, reachable_nodes
from headwater.compiler.dsl.messages import STREAMS, topology_error
from headwater.compiler.streams_config import MERGE_REPARTITIONS, SINGLE_STORE_SELF_JOIN
from headwater.compiler.version_differences import FIRST_KEY_CHANGE_FOUND
from headwater.model.behaviors import StreamSelfJoin, StreamStreamJoin
from headwater.model.problems import Problem, ProblemCode

UpwardPath = Callable[[GraphNode, GraphNode], Iterator[GraphNode]]


def optimize_graph(builder: Builder) -> None:
    """Change the graph by the rules without a name, and by the rules that `topology.optimization` names."""
    for word, rule in RULES:
        if word is None or word in builder.config.optimizations:
            rule(builder)


def _merge_repartitions(builder: Builder) -> None:
    """Move repartitions up to their key change; a single one is moved, too.

    Where the search of Kafka Streams fails, it throws, and no further repartition is moved.
    """
    groups = defaultdict(list)
    for group in builder.copartition_groups:
        for source in group:
            groups[source].append(group)
    path = _all_above if FIRST_KEY_CHANGE_FOUND.is_in(builder.config.version) else _last_parents
    for changer, repartitions in _by_changer(builder, path).items():
        if not repartitions:
            continue
        hoisted = _repartition_below(builder, changer, repartitions)
        for repartition in repartitions:
            child = _child_above(repartition, changer, path)
            if child is None:
                if hoisted.children:
                    changer.add_child(hoisted)
                builder.problems.append(_search_fails(repartition, changer))
                return
            _replace_repartition(repartition, hoisted, changer, child)
            for group in groups.pop(repartition.name, ()):
                group.remove(repartition.name)
                group.add(hoisted.name)
                groups[hoisted.name].append(group)
            builder.renamed_sources[repartition.name] = hoisted.name
        changer.add_child(hoisted)


def _by_changer(builder: Builder, path: UpwardPath) -> dict[GraphNode, dict[GraphNode, None]]:
    """Return node → repartitions that move below it: a key-changing node, or a merge downstream of it."""
    by_changer = dict(builder.mergeable)
    if not builder.merges:
        return by_changer
    merged: dict[GraphNode, dict[GraphNode, None]] = {merge: {} for merge in builder.merges}
    for changer, repartitions in builder.mergeable.items():
        if not repartitions:
            continue
        for merge in _merges_between(changer, repartitions, path):
            merged[merge].update(repartitions)
            by_changer.pop(changer, None)
    return by_changer | merged


def _merges_between(
    changer: GraphNode, repartitions: dict[GraphNode, None], path: UpwardPath
) -> set[GraphNode]:
    """Return the merges between the key changer and all of the repartitions."""
    above = [{node for node in _seen_from(each, changer, path) if node.is_merge} for each in repartitions]
    return {merge for merge in set.intersection(*above) if changer in _seen_from(merge, changer, path)}


def _seen_from(start: GraphNode, changer: GraphNode, path: UpwardPath) -> set[GraphNode]:
    """Return the nodes of which the search from `start` finds a child, as far back as `changer`."""
    return {node for child in path(start, changer) for node in child.parents}


def _child_above(start: GraphNode, changer: GraphNode, path: UpwardPath) -> GraphNode | None:
    """Return the first child of `changer` that the search from `start` finds."""
    return next((node for node in path(start, changer) if changer in node.parents), None)


def _all_above(start: GraphNode, oldest: GraphNode) -> Iterator[GraphNode]:
    """Return the nodes that the upward search tests: each parent and what is above it, in order (since 4.3).

    Nodes that were added before `oldest` cannot be below it, so the search ends there.
    """
    seen: set[GraphNode] = set()
    pending = [start]
    while pending:
        node = pending.pop()
        if node not in seen:
            seen.add(node)
            yield node
            if node.first_priority > oldest.first_priority:
                pending.extend(reversed(node.parents))


def _last_parents(start: GraphNode, oldest: GraphNode) -> Iterator[GraphNode]:
    """Return the nodes that the upward search tests: all parents, then the last parent's (before 4.3).

    Nodes that were added before `oldest` cannot be below it, so the search ends there.
    """
    yield start
    node = start
    while node.first_priority > oldest.first_priority and node.parents:
        yield from node.parents
        node = next(reversed(node.parents))


def _repartition_below(
    builder: Builder, changer: GraphNode, repartitions: dict[GraphNode, None]
) -> GraphNode:
    """Return the new repartition, with the topic of the first one and the key changer's priority."""
    first = next(iter(repartitions))
    assert isinstance(first.declares, RepartitionDeclaration)  # noqa: S101 - only repartitions are noted as mergeable
    node = builder.repartition(first.declares.topic, first.declares.record, named_by_user=True)
    node.at = first.at
    node.priority = node.first_priority = changer.priority
    return node


def _replace_repartition(
    repartition: GraphNode, hoisted: GraphNode, changer: GraphNode, child: GraphNode
) -> None:
    hoisted.add_child(child)
    changer.remove_child(child)
    parents = tuple(repartition.parents)
    for reader in tuple(repartition.children):
        for parent in parents:
            parent.add_child(reader)
    for parent in parents:
        parent.remove_child(repartition)
    repartition.clear_children()


def _search_fails(repartition: GraphNode, changer: GraphNode) -> Problem:
    return topology_error(
        f"The optimization cannot move repartition {repartition.name} up to {changer.name}.",
        throws=STREAMS,
        code=ProblemCode.OPTIMIZATION_FAILS,
        node=repartition.name,
        expected="repartitions that share neither operators nor merges below the key change",
        found=f"the path below {changer.name} was already moved",
        at=repartition.at,
        fix="Remove `merge.repartition.topics` (or `all`) from topology.optimization, or call `repartition` "
        "right after the key change. If two groupings are below it, both can also use one named group.",
    )


def _merge_sources(builder: Builder) -> None:
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
                _merge_source(builder, first, node)
            continue
        firsts = {by_topic.setdefault(topic, node): topic for topic in dict.fromkeys(declares.topics)}
        firsts.pop(node, None)
        for first, topic in firsts.items():
            if set(_source_of(first).topics) == set(declares.topics):
                _merge_source(builder, first, node)
            else:
                builder.problems.append(_overlapping_topics(first, node, topic))
                _move_children(builder, first, node)


def _merge_source(builder: Builder, first: GraphNode, node: GraphNode) -> None:
    resets = (_source_of(first).offset_reset, _source_of(node).offset_reset)
    if resets[0] != resets[1]:
        builder.problems.append(_resets_differ(first, node))
    _move_children(builder, first, node)
    builder.note_non_source(
        node.name,
        f"{node.name} reads the same topics as {first.name} and is merged into it",
        frozenset({first.name}),
        "Read the topics with one call, name its result by `as`, and use this name in both places.",
    )


def _move_children(builder: Builder, first: GraphNode, node: GraphNode) -> None:
    for child in tuple(node.children):
        node.remove_child(child)
        first.add_child(child)
    builder.graph.root.remove_child(node)


def _source_of(node: GraphNode) -> SourceDeclaration:
    assert isinstance(node.declares, SourceDeclaration)  # noqa: S101 - only sources come here
    return node.declares


def _overlapping_topics(first: GraphNode, node: GraphNode, topic: str) -> Problem:
    return topology_error(
        f"Two streams read overlapping but not equal sets of topics, {first.name} and {node.name}.",
        node=node.name,
        topic=topic,
        expected="equal sets, or sets without a common topic",
        found=f"[{', '.join(_source_of(first).topics)}] and [{', '.join(_source_of(node).topics)}]",
        at=node.at,
        fix="Read each topic by a stream of its own and `merge` where needed.",
    )


def _resets_differ(first: GraphNode, node: GraphNode) -> Problem:
    return topology_error(
        f"Two streams of the same topics have different offset reset policies, {first.name} and {node.name}.",
        node=node.name,
        topic=", ".join(_source_of(node).topics) or _source_of(node).pattern,
        expected=f"{_source_of(first).offset_reset or 'none given'} (as {first.name})",
        found=_source_of(node).offset_reset or "none given",
        at=node.at,
        fix="Give both the same `offsetReset`.",
    )


def _rewrite_self_joins(builder: Builder) -> None:
    """Replace a join of a stream with itself by one processor with one store (`rewriteSelfJoin`)."""
    for node in reachable_nodes(builder.graph.root):
        join = node.declares
        if not isinstance(join, StreamJoinDeclaration) or len(node.parents) != 1:
            continue
        (parent,) = node.parents
        other = builder.other_windowed[node]
        parent.remove_child(other)
        node.declares = SelfJoinDeclaration(
            join.this_windowed, join.merge, join.this_store, _self_join_behavior(join)
        )


def _self_join_behavior(join: StreamJoinDeclaration) -> StreamSelfJoin | None:
    left = join.this_behavior
    if not isinstance(left, StreamStreamJoin):
        return None
    return StreamSelfJoin(left.window, left.value, join.this_store.name)


RULES: tuple[tuple[str | None, Callable[[Builder], None]], ...] = (
    (None, _merge_sources),
    (MERGE_REPARTITIONS, _merge_repartitions),
    (SINGLE_STORE_SELF_JOIN, _rewrite_self_joins),
)
"""Value of `topology.optimization` (None = always) and rule. `write_topology` reuses source topics."""
