"""Calls on the `StreamsBuilder` and on the `Topology`: sources, global tables, stores and processors."""

import attrs

from headwater.model.stores import Materialized, Serdes, StoreBuilder


@attrs.frozen
class Topics:
    """What a source reads: a set of topic names in the order given, or a Java regular expression."""

    names: tuple[str, ...] = ()
    pattern: str | None = None


@attrs.frozen
class ReadStream:
    """`builder.stream(topics | pattern, Consumed)`."""

    topics: Topics
    name: str | None = None
    offset_reset: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class ReadTable:
    """`builder.table(topic, Consumed, Materialized)`."""

    topic: str
    name: str | None = None
    materialized: Materialized | None = None
    offset_reset: str | None = None
    serdes: Serdes | None = None
    timestamp: str | None = None


@attrs.frozen
class GlobalTable:
    """`builder.globalTable(topic, Consumed, Materialized)`."""

    topic: str
    name: str | None = None
    materialized: Materialized | None = None
    serdes: Serdes | None = None


@attrs.frozen
class AddStateStore:
    """`addStateStore(builder, processors…)`; `processors` is the Processor API's form."""

    store: StoreBuilder
    processors: tuple[str, ...] = ()


@attrs.frozen
class AddGlobalStore:
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
