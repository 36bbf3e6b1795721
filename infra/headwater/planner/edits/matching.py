"""Both topologies of an application, and which stores and repartition topics of one continue in the other.

Kafka Streams knows no identity besides names. What a user means by "the same store" is decided by what writes
to it: first names that users gave, then operators with the same inputs, then the most similar operators.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from functools import cached_property

import attrs

from headwater.model.cluster import ClusterSnapshot
from headwater.model.compiled import InternalTopic
from headwater.model.nodes import Node, ProcessorNode, SourceNode
from headwater.planner.edits.graph import INDEX, digest_texts
from headwater.planner.edits.layouts import Layout
from headwater.planner.edits.pairs import group_pairs
from headwater.planner.edits.partitioners import PartitionerChange, partitioner_changes
from headwater.planner.edits.topologies import Topology


@attrs.frozen
class Item:
    """A store or a repartition topic of one side; `name` has no application id.

    `path` is a digest of all operators from the sources to it, `operators` use it, `inputs` are the user
    topics upstream. `path_with_stores` and `all_inputs` are the same with the stores that operators upstream
    read, such as joined tables. `order` is its position in the topology.
    """

    name: str
    is_store: bool
    is_generated: bool
    layout: Layout | None
    path: str
    path_with_stores: str
    operators: tuple[str, ...]
    inputs: frozenset[str]
    all_inputs: frozenset[str]
    order: int


class TopologyItems:
    """The stores and repartition topics of one topology, and the operators around them."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._graph = topology.graph
        self._nodes = self._graph.nodes

    def _operator_text(self, node: Node) -> str:
        if isinstance(node, ProcessorNode) and node.behavior is not None:
            return type(node.behavior).__name__
        return self._graph.operation_text(node) if isinstance(node, ProcessorNode) else type(node).__name__

    @cached_property
    def items(self) -> tuple[Item, ...]:
        topology = self._topology
        users: defaultdict[str, list[str]] = defaultdict(list)
        for node in self._nodes.values():
            for store in node.stores if isinstance(node, ProcessorNode) else ():
                users[store].append(node.name)
        readers: defaultdict[str, list[str]] = defaultdict(list)
        for node in self._nodes.values():
            for topic in node.topics if isinstance(node, SourceNode) else ():
                readers[topic].append(node.name)
        generated = topology.nodes.generated_names
        stores = (
            self._build_item(name, users[name], layout, is_generated=name in generated, is_store=True)
            for name, layout in topology.store_layouts.items()
        )
        topics = (
            self._build_item(
                name,
                readers[name],
                topology.repartition_layouts.get(name),
                is_generated=topic.generated or INDEX.search(name) is not None,
                is_store=False,
            )
            for name, topic in topology.repartitions.items()
        )
        return tuple(sorted((*stores, *topics), key=lambda item: item.order))

    def _build_item(
        self,
        name: str,
        nodes: Iterable[str],
        layout: Layout | None,
        *,
        is_generated: bool,
        is_store: bool,
    ) -> Item:
        graph = self._graph
        used_by = sorted(nodes, key=lambda each: graph.order[each])
        writers = (list(graph.writers_among(name, used_by)) if is_store else []) or used_by
        return Item(
            name,
            is_store,
            is_generated or (is_store and INDEX.search(name) is not None),
            layout,
            # Sorted: a document from code has the nodes in another order than a text of the same topology.
            digest_texts(sorted(graph.path_digests[each] for each in used_by)),
            digest_texts(sorted(graph.path_digests_with_stores[each] for each in writers)),
            tuple(self._operator_text(self._nodes[each]) for each in used_by),
            graph.input_topics(used_by, graph.parents),
            graph.input_topics(writers, graph.parents_and_writers),
            min((graph.order[each] for each in used_by), default=len(graph.order)),
        )

    def surrounding_operations(self, item: Item) -> Counter[str]:
        """Return what the nodes before and after an item do, to compare how similar two items are."""
        start = [
            node.name
            for node in self._nodes.values()
            if (isinstance(node, ProcessorNode) and item.is_store and item.name in node.stores)
            or (isinstance(node, SourceNode) and not item.is_store and item.name in node.topics)
        ]
        graph = self._graph
        before = graph.reachable_nodes(start, graph.parents)
        after = graph.reachable_nodes(start, graph.children) - set(start)
        return Counter(
            (
                *(f"before {graph.operation_text(self._nodes[name])}" for name in before),
                *(f"after {graph.operation_text(self._nodes[name])}" for name in after),
            )
        )


def match_items(old: TopologyItems, new: TopologyItems) -> Mapping[tuple[bool, str], str]:
    """Return (is a store, name before) → name afterwards of stores and repartition topics that continue."""
    pairs: dict[tuple[bool, str], str] = {}
    waiting_old, waiting_new = list(old.items), list(new.items)

    def pair(first: Item, second: Item) -> None:
        pairs[first.is_store, first.name] = second.name
        waiting_old.remove(first)
        waiting_new.remove(second)

    def pair_groups(key: Callable[[Item], Hashable], *, same_name_only: bool = False) -> None:
        for olds, news in group_pairs(waiting_old, waiting_new, key, key):
            if len(olds) == len(news) and not same_name_only:
                chosen = list(zip(olds, news, strict=True))
            else:
                by_name = {item.name: item for item in news}
                chosen = [(item, by_name[item.name]) for item in olds if item.name in by_name]
            for first, second in chosen:
                pair(first, second)

    pair_groups(_given_name, same_name_only=True)
    pair_groups(lambda item: (item.is_store, item.path, item.layout))
    _pair_similar(old, new, waiting_old, waiting_new, pair)
    pair_groups(lambda item: (item.is_store, item.operators, item.name), same_name_only=True)
    pair_groups(
        lambda item: (
            item.is_store,
            item.operators,
            item.inputs,
            INDEX.sub("#", item.name),
            None if item.is_store else item.layout,  # records in flight are read by their new reader, or not
        )
    )
    pair_groups(lambda item: (item.is_store, item.inputs, item.name), same_name_only=True)
    return pairs


def _given_name(item: Item) -> Hashable:
    """Return a key of a name that users gave; a generated name is no identity."""
    return (item.is_store, item.name) if not item.is_generated else None


def _pair_similar(
    old: TopologyItems,
    new: TopologyItems,
    waiting_old: list[Item],
    waiting_new: list[Item],
    pair: Callable[[Item, Item], None],
) -> None:
    """Pair items with the same operators, inputs and format: the most similar ones first."""

    def key(item: Item) -> Hashable:
        return (item.is_store, item.operators, item.inputs, item.layout)

    for olds, news in group_pairs(waiting_old, waiting_new, key, key):
        around = {
            **{id(item): old.surrounding_operations(item) for item in olds},
            **{id(item): new.surrounding_operations(item) for item in news},
        }
        ranked = sorted(
            ((first, second) for first in olds for second in news),
            key=lambda both: (
                _count_differences(around[id(both[0])], around[id(both[1])]),
                both[0].name != both[1].name,
                both[0].order,
                both[1].order,
            ),
        )
        taken = set[int]()
        for first, second in ranked:
            if id(first) not in taken and id(second) not in taken:
                taken |= {id(first), id(second)}
                pair(first, second)


def _count_differences(first: Counter[str], second: Counter[str]) -> int:
    return ((first - second) + (second - first)).total()


@attrs.frozen
class Sides:
    """One application before and after an edit. `live` is None without a cluster."""

    before: Topology
    after: Topology
    live: ClusterSnapshot | None = None

    @cached_property
    def _items_of_sides(self) -> tuple[TopologyItems, TopologyItems]:
        return TopologyItems(self.before), TopologyItems(self.after)

    @cached_property
    def continued(self) -> Mapping[tuple[bool, str], str]:
        """(Is a store, name before) → name afterwards."""
        return match_items(*self._items_of_sides)

    @cached_property
    def partitioner_changes(self) -> Mapping[tuple[bool, str], PartitionerChange]:
        """(Is a store, name afterwards) → the change of a partitioner that concerns it."""
        return partitioner_changes(self.before, self.after, self.origins)

    @cached_property
    def _items_by_name(self) -> tuple[Mapping[tuple[bool, str], Item], ...]:
        return tuple(
            {(item.is_store, item.name): item for item in side.items} for side in self._items_of_sides
        )

    def _items_of(self, name: str, *, is_store: bool) -> tuple[Item | None, Item | None]:
        """Return the store or topic of this name on both sides."""
        old, new = (items.get((is_store, name)) for items in self._items_by_name)
        return old, new

    def has_same_path(self, name: str, *, is_store: bool) -> bool:
        """Return whether the same operators and stores are before a store or topic on both sides."""
        old, new = self._items_of(name, is_store=is_store)
        return old is not None and new is not None and old.path_with_stores == new.path_with_stores

    @cached_property
    def origins(self) -> Mapping[tuple[bool, str], str]:
        """(Is a store, name afterwards) → name before."""
        return {(is_store, new): old for (is_store, old), new in self.continued.items()}

    def input_topics(self, name: str, *, is_store: bool) -> tuple[frozenset[str], frozenset[str]]:
        """Return the user topics before a store or topic, also of joined tables, on both sides."""
        old, new = self._items_of(name, is_store=is_store)
        return (old.all_inputs if old else frozenset()), (new.all_inputs if new else frozenset())

    def partition_count(self, topic: InternalTopic) -> int:
        """Return the partition count before the edit: the count on the cluster, if it was read."""
        found = self.live.topics.get(topic.name) if self.live is not None else None
        return found.partitions if found is not None else topic.partitions
