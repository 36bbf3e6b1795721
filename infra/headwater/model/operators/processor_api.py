"""Calls on a `Topology` (Processor API), also on one that `StreamsBuilder#build` returned."""

import attrs

from headwater.model.operators.sources import Topics
from headwater.model.stores import Serdes, StoreBuilder


@attrs.frozen
class AddSource:
    """`addSource(name, topics | pattern)`."""

    name: str
    topics: Topics
    offset_reset: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class AddProcessor:
    """`addProcessor(name, supplier, parents…)`; `connected` are the supplier's own `stores()`."""

    name: str
    parents: tuple[str, ...]
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None


@attrs.frozen
class AddSink:
    """`addSink(name, topic | extractor, parents…)`, with `extractor` and `topic_expression` as in `To`."""

    name: str
    parents: tuple[str, ...]
    topic: str | None = None
    extractor: str | None = None
    serdes: Serdes | None = None
    partitioner: str | None = None
    topic_expression: str | None = None


@attrs.frozen
class AddReadOnlyStateStore:
    """`addReadOnlyStateStore(store, source, …, topic, processor, supplier)` (KIP-813).

    `name` is the processor's. The topic serves as the store's changelog, so Kafka Streams creates none.
    """

    store: StoreBuilder
    topic: str
    source_name: str
    name: str
    processor_class: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class ConnectStores:
    """`connectProcessorAndStateStores(processor, stores…)`."""

    processor: str
    stores: tuple[str, ...]
