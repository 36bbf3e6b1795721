"""Calls that add stores, and calls of the Processor API: a frozen class for each, as in `operators`."""

import attrs

from headwater.model.operators import Operator, Topics
from headwater.model.stores import Serdes, StoreBuilder


@attrs.frozen
class AddStateStore(Operator):
    """`addStateStore(builder, processors…)`; `processors` is the Processor API's form."""

    store: StoreBuilder
    processors: tuple[str, ...] = ()


@attrs.frozen
class AddGlobalStore(Operator):
    """`builder.addGlobalStore(store, topic, Consumed, supplier)`.

    In the Processor API (`Topology#addGlobalStore`) both node names are given: `source_name` and `name`.
    """

    store: StoreBuilder
    topic: str
    name: str | None = None
    source_name: str | None = None
    processor_class: str | None = None
    serdes: Serdes | None = None


@attrs.frozen
class AddSource(Operator):
    """`addSource(name, topics | pattern)`."""

    name: str
    topics: Topics
    offset_reset: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class AddProcessor(Operator):
    """`addProcessor(name, supplier, parents…)`; `connected` are the supplier's own `stores()`."""

    name: str
    parents: tuple[str, ...]
    connected: tuple[StoreBuilder, ...] = ()
    processor_class: str | None = None


@attrs.frozen
class AddSink(Operator):
    """`addSink(name, topic | extractor, parents…)`, with `extractor` and `topic_expression` as in `To`."""

    name: str
    parents: tuple[str, ...]
    topic: str | None = None
    extractor: str | None = None
    serdes: Serdes | None = None
    partitioner: str | None = None
    topic_expression: str | None = None


@attrs.frozen
class AddReadOnlyStateStore(Operator):
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
class ConnectStores(Operator):
    """`connectProcessorAndStateStores(processor, stores…)`."""

    processor: str
    stores: tuple[str, ...]
