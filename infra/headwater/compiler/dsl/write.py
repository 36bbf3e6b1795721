"""Writes the graph to the topology, in the order that decides sub-topology ids (facts 3.1).

The nodes are written by priority from the root, each after all its parents. Kafka Streams adds children to
its queue each time it visits a node. Here they are added once, when their last parent is written, which gives
the same order in linear time: the other copies are of nodes that are queued, written or not yet writable.
"""

import heapq
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from headwater.compiler.dsl.builder import Builder
from headwater.compiler.dsl.declarations import (
    GlobalStoreDeclaration,
    InternalSourceDeclaration,
    OldValues,
    ProcessorDeclaration,
    RepartitionDeclaration,
    SelfJoinDeclaration,
    SinkDeclaration,
    SourceDeclaration,
    StoreDeclaration,
    StreamJoinDeclaration,
    TableJoinDeclaration,
    TableSourceDeclaration,
)
from headwater.compiler.dsl.graph import GraphNode, mark_kept_null_keys
from headwater.compiler.dsl.messages import ARGUMENT, topology_error
from headwater.compiler.dsl.stores import LazyStore, Store
from headwater.compiler.dsl.topology import TopologyUnderConstruction
from headwater.compiler.streams_config import REUSE_SOURCE_TOPICS
from headwater.compiler.version_differences import (
    GLOBAL_STORE_NOT_LOGGED,
    STORE_ADDED_AGAIN_STAYS_CONNECTED,
)
from headwater.model import behaviors as does
from headwater.model.behaviors import (
    Behavior,
    NonNullKeyFilter,
    PassThrough,
    TableJoinMerge,
    TableSource,
)
from headwater.model.durations import duration_text
from headwater.model.formats import SinkSettings, SourceSettings
from headwater.model.nodes import RepartitionTopic


def write_topology(builder: Builder) -> TopologyUnderConstruction:
    """Return the topology with all nodes that are reachable from the root and have all parents written."""
    topology = TopologyUnderConstruction(
        keeps_connections=STORE_ADDED_AGAIN_STAYS_CONNECTED.is_in(builder.config.version),
        refuses_logged_global_stores=not GLOBAL_STORE_NOT_LOGGED.is_in(builder.config.version),
    )
    for topic in builder.foreign_key_topics:
        topology.add_foreign_key_topic(topic)
    reuse = REUSE_SOURCE_TOPICS in builder.config.optimizations
    root = builder.graph.root
    mark_kept_null_keys(root)
    waiting = {root: 0}
    queue: list[tuple[int, int, GraphNode]] = [(root.priority, root.first_priority, root)]
    while queue:
        node = heapq.heappop(queue)[2]
        if node.declares is not None:
            _WRITERS[type(node.declares)](topology, node, node.declares)
            if reuse and isinstance(node.declares, TableSourceDeclaration) and not node.declares.is_global:
                _reuse_source_topic(topology, node.declares)
        for child in node.children:
            left = waiting.get(child, len(child.parents)) - 1
            waiting[child] = left
            if left == 0:
                heapq.heappush(queue, (child.priority, child.first_priority, child))
    return topology


def _parents_of(node: GraphNode) -> tuple[str, ...]:
    return tuple(parent.name for parent in node.parents)


def _write_store(topology: TopologyUnderConstruction, node: GraphNode, declares: StoreDeclaration) -> None:
    topology.add_store(declares.store, node.at)


def _write_source(topology: TopologyUnderConstruction, node: GraphNode, declares: SourceDeclaration) -> None:
    if declares.pattern is not None:
        topology.add_pattern_source(node.name, declares.pattern, node.at, declares.reads)
    else:
        topology.add_source(node.name, declares.topics, node.at, declares.reads)


def _table_source(
    topology: TopologyUnderConstruction, node: GraphNode, declares: TableSourceDeclaration
) -> None:
    if declares.is_global:
        topology.add_global_store(
            declares.lazy_store.store,
            declares.topic,
            declares.source,
            declares.processor,
            node.at,
            reads=declares.reads,
        )
        return
    topology.add_source(declares.source, (declares.topic,), node.at, declares.reads)
    stores = _needed_stores(declares.lazy_store)
    behavior = complete_behavior(TableSource(None), node, declares.old_values, declares.lazy_store)
    topology.add_processor(declares.processor, (declares.source,), node.at, stores, behavior)


def _reuse_source_topic(topology: TopologyUnderConstruction, declares: TableSourceDeclaration) -> None:
    for store in _needed_stores(declares.lazy_store):
        topology.reuse_as_changelog(store.name, declares.topic)


def _global_store(
    topology: TopologyUnderConstruction, node: GraphNode, declares: GlobalStoreDeclaration
) -> None:
    topology.add_global_store(
        declares.store,
        declares.topic,
        declares.source,
        declares.processor,
        node.at,
        processor_class=declares.processor_class,
        reads=declares.reads,
    )


def _write_processor(
    topology: TopologyUnderConstruction, node: GraphNode, declares: ProcessorDeclaration
) -> None:
    stores = (*declares.stores, *_needed_stores(declares.lazy_store))
    behavior = complete_behavior(declares.behavior, node, declares.old_values, declares.lazy_store)
    first = () if declares.connected_first else stores
    topology.add_processor(declares.name, _parents_of(node), node.at, first, behavior)
    if declares.connected:
        topology.connect(declares.name, declares.connected, node.at)
    if declares.connected_first:
        for own in stores:
            topology.add_store(own, node.at, declares.name)
    if declares.required_history_ms is not None:
        for store in declares.connected:
            _check_history(topology, node, store, declares.required_history_ms)


def _check_history(topology: TopologyUnderConstruction, node: GraphNode, store: str, grace_ms: int) -> None:
    history = topology.history_retention_ms(store)
    if history is not None and history >= grace_ms:
        return
    found = (
        f"a history of {duration_text(history)}" if history is not None else "a store that is not versioned"
    )
    grace = duration_text(grace_ms)
    topology.problems.append(
        topology_error(
            f"{node.name} waits {grace} for late records, longer than the history of store {store}.",
            throws=ARGUMENT,
            node=node.name,
            expected=f"a versioned store with a history of at least {grace}",
            found=found,
            at=node.at,
            fix="Lengthen the history retention of the table's store, or shorten `grace`.",
        )
    )


def _write_sink(topology: TopologyUnderConstruction, node: GraphNode, declares: SinkDeclaration) -> None:
    topology.add_sink(
        node.name,
        _parents_of(node),
        node.at,
        topic=declares.topic,
        extractor=declares.extractor,
        writes=declares.writes,
    )


def _internal_source(
    topology: TopologyUnderConstruction, node: GraphNode, declares: InternalSourceDeclaration
) -> None:
    topology.add_source(node.name, (declares.topic,), node.at, declares.reads)


def _write_repartition(
    topology: TopologyUnderConstruction, node: GraphNode, declares: RepartitionDeclaration
) -> None:
    topic = RepartitionTopic(declares.topic, partitions=declares.partitions, at=node.at)
    if not topology.add_repartition_topic(topic):
        return
    parents = _parents_of(node)
    if declares.filter is not None:
        # a left or outer join downstream accepts null keys (KIP-962)
        behavior = PassThrough() if node.keeps_null_keys else NonNullKeyFilter()
        topology.add_processor(declares.filter, parents, node.at, behavior=behavior)
        parents = (declares.filter,)
    writes = SinkSettings(declares.record, declares.partitioner, carries_changes=declares.carries_changes)
    reads = SourceSettings(declares.record, carries_changes=declares.carries_changes)
    topology.add_sink(declares.sink, parents, node.at, topic=declares.topic, writes=writes)
    topology.add_source(declares.source, (declares.topic,), node.at, reads)


def _stream_join(
    topology: TopologyUnderConstruction, node: GraphNode, declares: StreamJoinDeclaration
) -> None:
    shared = (declares.shared_store,) if declares.shared_store is not None else ()
    topology.add_processor(
        declares.this_join,
        (declares.this_windowed,),
        node.at,
        (declares.other_store, *shared),
        declares.this_behavior,
    )
    topology.add_processor(
        declares.other_join,
        (declares.other_windowed,),
        node.at,
        (declares.this_store, *shared),
        declares.other_behavior,
    )
    sides = (declares.this_join, declares.other_join)
    topology.add_processor(declares.merge, sides, node.at, behavior=PassThrough())


def _self_join(topology: TopologyUnderConstruction, node: GraphNode, declares: SelfJoinDeclaration) -> None:
    topology.add_processor(
        declares.merge, (declares.windowed,), node.at, (declares.store,), declares.behavior
    )


def _table_join(topology: TopologyUnderConstruction, node: GraphNode, declares: TableJoinDeclaration) -> None:
    for join, table, behavior in (
        (declares.this_join, declares.this, declares.this_behavior),
        (declares.other_join, declares.other, declares.other_behavior),
    ):
        side = complete_behavior(behavior, node, declares.old_values, side_of=table)
        topology.add_processor(join, (table,), node.at, behavior=side)
    own = (declares.store,) if declares.store is not None else ()
    merged = TableJoinMerge(declares.store.name if declares.store is not None else None)
    merge = complete_behavior(merged, node, declares.old_values)
    sides = (declares.this_join, declares.other_join)
    topology.add_processor(declares.merge, sides, node.at, own, merge)
    topology.connect(declares.this_join, declares.other_stores, node.at)
    topology.connect(declares.other_join, declares.this_stores, node.at)


def _needed_stores(lazy_store: LazyStore | None) -> tuple[Store, ...]:
    return (lazy_store.store,) if lazy_store is not None and lazy_store.needed else ()


_WRITERS: Mapping[type, Callable[[TopologyUnderConstruction, GraphNode, Any], None]] = {
    StoreDeclaration: _write_store,
    SourceDeclaration: _write_source,
    TableSourceDeclaration: _table_source,
    GlobalStoreDeclaration: _global_store,
    ProcessorDeclaration: _write_processor,
    SinkDeclaration: _write_sink,
    InternalSourceDeclaration: _internal_source,
    RepartitionDeclaration: _write_repartition,
    StreamJoinDeclaration: _stream_join,
    SelfJoinDeclaration: _self_join,
    TableJoinDeclaration: _table_join,
}
_SENDS_OLD = (
    does.StreamAggregate,
    does.TableSource,
    does.TableFilter,
    does.TableMapValues,
    does.TableTransformValues,
    does.TableAggregate,
    does.TableTableJoin,
    does.TableJoinMerge,
    does.ForeignKeyResult,
)
_VERSIONED = (
    does.TableFilter,
    does.TableRepartitionMap,
    does.TableTableJoin,
    does.ForeignKeySend,
    does.ForeignKeyNotify,
)


def complete_behavior(
    behavior: Behavior | None,
    node: GraphNode,
    old_values: OldValues | None,
    lazy_store: LazyStore | None = None,
    *,
    side_of: str | None = None,
) -> Behavior | None:
    """Return `behavior` with what is known only after all calls: store, old values, versioning.

    `side_of`: only this parent counts for versioning (one side of a table-table join).
    """
    known: dict[str, Any] = {}
    if lazy_store is not None and lazy_store.needed:
        known["store"] = lazy_store.store.name
    if old_values is not None and old_values.enabled and isinstance(behavior, _SENDS_OLD):
        known["sends_old"] = True
    if isinstance(behavior, _VERSIONED):
        parents = [parent for parent in node.parents if side_of is None or parent.name == side_of]
        if any(parent.is_versioned for parent in parents):
            known["versioned"] = True
    if behavior is None or not known:
        return behavior
    return attrs.evolve(behavior, **known)
