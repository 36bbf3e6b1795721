"""Calls on a `Topology`; they are made after all DSL calls, whatever their order in the document."""

from collections.abc import Callable, Mapping
from typing import Any

from headwater.compiler.dsl.formats import with_serdes
from headwater.compiler.dsl.stores import Store, built_store, supplier_problems
from headwater.compiler.dsl.topology import TopologyUnderConstruction
from headwater.model import operators as op
from headwater.model.behaviors import RecordFormat, RunProcessor, SinkSettings, SourceSettings
from headwater.model.operators import Operator, Step
from headwater.model.problems import Location
from headwater.model.stores import StoreBuilder


def is_processor_api(operator: Operator) -> bool:
    """Return whether a call is one on a `Topology`.

    `addStateStore` with processors and `addGlobalStore` with a source name are, too.
    """
    if isinstance(operator, op.AddStateStore):
        return bool(operator.processors)
    if isinstance(operator, op.AddGlobalStore):
        return operator.source_name is not None
    return type(operator) in _CALLS


def add(topology: TopologyUnderConstruction, step: Step) -> None:
    _CALLS[type(step.operator)](topology, step.operator, step.at)


def _add_source(topology: TopologyUnderConstruction, call: op.AddSource, at: Location) -> None:
    reads = SourceSettings(with_serdes(RecordFormat(), call.serdes), call.offset_reset, call.timestamp)
    if call.topics.pattern is not None:
        topology.add_pattern_source(call.name, call.topics.pattern, at, reads)
    else:
        topology.add_source(call.name, call.topics.names, at, reads)


def _add_processor(topology: TopologyUnderConstruction, call: op.AddProcessor, at: Location) -> None:
    stores = [_build_store(topology, store, at) for store in call.connected]
    # later calls may connect stores, so the node has the names of its stores, not the behavior
    behavior = RunProcessor(call.processor_class)
    topology.add_processor(call.name, call.parents, at, stores, behavior)


def _add_sink(topology: TopologyUnderConstruction, call: op.AddSink, at: Location) -> None:
    writes = SinkSettings(with_serdes(RecordFormat(), call.serdes), call.partitioner, call.topic_expression)
    topology.add_sink(call.name, call.parents, at, topic=call.topic, extractor=call.extractor, writes=writes)


def _connect_stores(topology: TopologyUnderConstruction, call: op.ConnectStores, at: Location) -> None:
    topology.connect(call.processor, call.stores, at)


def _add_state_store(topology: TopologyUnderConstruction, call: op.AddStateStore, at: Location) -> None:
    topology.add_store(_build_store(topology, call.store, at), at, *call.processors)


def _add_global_store(topology: TopologyUnderConstruction, call: op.AddGlobalStore, at: Location) -> None:
    source = call.source_name if call.source_name is not None else f"{call.name}-source"
    processor = call.name if call.name is not None else source
    topology.add_global_store(
        _build_store(topology, call.store, at),
        call.topic,
        source,
        processor,
        at,
        processor_class=call.processor_class,
        reads=SourceSettings(_filled_from(call)),
    )


def _add_read_only_store(
    topology: TopologyUnderConstruction, call: op.AddReadOnlyStateStore, at: Location
) -> None:
    reads = SourceSettings(_filled_from(call), timestamp=call.timestamp)
    topology.add_source(call.source_name, (call.topic,), at, reads)
    stores = [_build_store(topology, call.store, at)]
    behavior = RunProcessor(call.processor_class)
    topology.add_processor(call.name, (call.source_name,), at, stores, behavior)
    topology.reuse_as_changelog(call.store.supplier.name, call.topic, at)


def _filled_from(call: op.AddGlobalStore | op.AddReadOnlyStateStore) -> RecordFormat:
    """Return the formats of the topic that fills a store; without serdes, the formats of the store."""
    return with_serdes(with_serdes(RecordFormat(), call.store.serdes), call.serdes)


def _build_store(topology: TopologyUnderConstruction, builder: StoreBuilder, at: Location) -> Store:
    topology.problems.extend(supplier_problems(builder.supplier, at))
    return built_store(builder)


_CALLS: Mapping[type, Callable[[TopologyUnderConstruction, Any, Location], None]] = {
    op.AddSource: _add_source,
    op.AddProcessor: _add_processor,
    op.AddSink: _add_sink,
    op.ConnectStores: _connect_stores,
    op.AddStateStore: _add_state_store,
    op.AddGlobalStore: _add_global_store,
    op.AddReadOnlyStateStore: _add_read_only_store,
}
