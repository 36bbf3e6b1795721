"""Which node of one topology is the same operator as a node of another one."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

import attrs

from headwater.model.behaviors import StreamSelfJoin
from headwater.model.nodes import Node, ProcessorNode
from headwater.planner.edits.declared import OFFSET_RESET, declared_aspects
from headwater.planner.edits.graph import INDEX
from headwater.planner.edits.topologies import Topology

T = TypeVar("T")


@attrs.frozen
class Pair:
    """Nodes that are the same operator. `is_certain` is False if another node could be meant as well."""

    old: Node
    new: Node
    is_certain: bool

    @property
    def replacement(self) -> tuple[str, str] | None:
        """Return both names, or both kinds if the names are equal; None if it is the same operator."""
        if _is_optimized(self.old) or _is_optimized(self.new):
            return None
        kinds, names = (_kind_of(self.old), _kind_of(self.new)), (self.old.name, self.new.name)
        are_generated = [INDEX.search(name) is not None for name in names]
        if names[0] == names[1]:
            return kinds if kinds[0] != kinds[1] and not any(are_generated) else None
        if kinds[0] != kinds[1]:
            return names
        is_hidden = isinstance(self.old, ProcessorNode) and self.old.behavior is None
        is_other = INDEX.sub("#", names[0]) != INDEX.sub("#", names[1])
        return names if is_hidden and all(are_generated) and is_other else None

    @property
    def new_name(self) -> tuple[str, str] | None:
        """Return both names if a user gave one of them, and it is another one; None otherwise."""
        names = (self.old.name, self.new.name)
        are_generated = all(INDEX.search(name) for name in names)
        return None if are_generated or names[0] == names[1] else names


@attrs.frozen
class Pairs:
    """The operators of two topologies, in the order of the topology afterwards."""

    pairs: tuple[Pair, ...]
    removed: tuple[Node, ...]
    added: tuple[Node, ...]


def paired_nodes(before: Topology, after: Topology) -> Pairs:
    """Pair the nodes of each kind.

    They are paired by name, if both sides have the same names. If numbers of generated names have shifted,
    nodes that do the same and have the same operators before them come first, then nodes that do the same
    between operators of the same kinds, then nodes that do the same, and at last all in their order. A store
    with a name that a user gave stays with its operator.
    """
    old, new = _by_kind(before), _by_kind(after)
    found = [
        pair
        for kind in old.keys() & new.keys()
        for pair in _pairs_of_one_kind(before, after, old[kind], new[kind])
    ]
    found += _pair_replacements(before, after, found)
    taken = {pair.old.name for pair in found}, {pair.new.name for pair in found}
    return Pairs(
        tuple(sorted(found, key=lambda pair: after.graph.order[pair.new.name])),
        tuple(node for name, node in before.graph.nodes.items() if name not in taken[0]),
        tuple(node for name, node in after.graph.nodes.items() if name not in taken[1]),
    )


def _pair_replacements(before: Topology, after: Topology, pairs: Sequence[Pair]) -> Sequence[Pair]:
    """Pair nodes of different kinds, or with other names: with the same store, or between the same nodes."""
    certain = [pair for pair in pairs if pair.is_certain and not after.graph.is_internal(pair.new.name)]
    names = (
        {pair.old.name: pair.new.name for pair in certain},
        {pair.new.name: pair.new.name for pair in certain},
    )

    def location(topology: Topology, node: Node) -> Hashable | None:
        graph, known = topology.graph, names[0 if topology is before else 1]
        around = [
            frozenset(
                known[each] for each in graph.nearest_known(following.get(node.name, ()), known, following)
            )
            for following in (graph.parents, graph.children)
        ]
        return (type(node), *around) if any(around) else None

    def location_and_stores(topology: Topology, node: Node) -> Hashable | None:
        found = location(topology, node)
        return (found, topology.graph.user_named_stores(node.name)) if found is not None else None

    taken = {pair.old.name for pair in pairs}, {pair.new.name for pair in pairs}
    old, new = (
        [
            node
            for name, node in topology.graph.nodes.items()
            if name not in names_ and not topology.graph.is_internal(name) and not _is_optimized(node)
        ]
        for topology, names_ in zip((before, after), taken, strict=True)
    )
    found = []
    for key in (_written_stores, location_and_stores, location):
        for olds, news in group_pairs(old, new, partial(key, before), partial(key, after)):
            if len(olds) == len(news) == 1:
                old.remove(olds[0])
                new.remove(news[0])
                found.append(Pair(olds[0], news[0], is_certain=False))
    return found


def _by_kind(topology: Topology) -> Mapping[Hashable, dict[str, Node]]:
    found: defaultdict[Hashable, dict[str, Node]] = defaultdict(dict)
    for name, node in topology.graph.nodes.items():
        found[type(node), topology.graph.is_internal(name), INDEX.sub("#", name)][name] = node
    return found


def _pairs_of_one_kind(
    before: Topology, after: Topology, old: Mapping[str, Node], new: Mapping[str, Node]
) -> Iterator[Pair]:
    if old.keys() == new.keys():
        yield from (Pair(old[name], new[name], is_certain=True) for name in old)
        return
    waiting_old, waiting_new = list(old.values()), list(new.values())
    for key in (
        _path_and_stores,
        _does_and_stores,
        _written_stores,
        _path_key,
        _surrounding_kinds,
        _declared_values,
        _same_kind,
    ):
        groups = group_pairs(waiting_old, waiting_new, partial(key, before), partial(key, after))
        for olds, news in groups:
            is_certain = key not in (_surrounding_kinds, _same_kind) and len(olds) == len(news) == 1
            for first, second in zip(olds, news, strict=False):
                waiting_old.remove(first)
                waiting_new.remove(second)
                yield Pair(first, second, is_certain=is_certain)


def _kind_of(node: Node) -> str:
    return type(node.behavior if isinstance(node, ProcessorNode) else node).__name__


def _is_optimized(node: Node) -> bool:
    """Return whether an optimization decides that the operator is another one."""
    return isinstance(node, ProcessorNode) and isinstance(node.behavior, StreamSelfJoin)


def _same_kind(topology: Topology, node: Node) -> Hashable:  # noqa: ARG001 - one of several keys
    return _kind_of(node)


def _declared_values(topology: Topology, node: Node) -> Hashable:
    values = declared_aspects(topology, node) or {}
    # Where reading starts is no part of what a source does with records.
    return _kind_of(node), tuple(sorted((a, v.normalized) for a, v in values.items() if a != OFFSET_RESET))


def _path_key(topology: Topology, node: Node) -> Hashable:
    return _declared_values(topology, node), topology.graph.path_digests[node.name]


def _surrounding_kinds(topology: Topology, node: Node) -> Hashable:
    graph = topology.graph
    around = (
        tuple(sorted(INDEX.sub("#", each) for each in following.get(node.name, ())))
        for following in (graph.parents, graph.children)
    )
    return _declared_values(topology, node), *around


def _does_and_stores(topology: Topology, node: Node) -> Hashable | None:
    stores = topology.graph.user_named_stores(node.name)
    return (_declared_values(topology, node), stores) if stores else None


def _path_and_stores(topology: Topology, node: Node) -> Hashable | None:
    stores = topology.graph.user_named_stores(node.name)
    return (_path_key(topology, node), stores) if stores else None


def _written_stores(topology: Topology, node: Node) -> Hashable | None:
    graph = topology.graph
    stores = graph.user_named_stores(node.name)
    return tuple(store for store in stores if any(graph.writers_among(store, [node.name]))) or None


def group_pairs(
    old: Iterable[T], new: Iterable[T], old_key: Callable[[T], Hashable], new_key: Callable[[T], Hashable]
) -> Sequence[tuple[list[T], list[T]]]:
    """Return what has the same key on both sides; the key None is not compared."""
    olds: defaultdict[Hashable, list[T]] = defaultdict(list)
    news: defaultdict[Hashable, list[T]] = defaultdict(list)
    for side, values, key in ((olds, old, old_key), (news, new, new_key)):
        for value in values:
            side[key(value)].append(value)
    return [(olds[each], news[each]) for each in olds if each is not None and each in news]
