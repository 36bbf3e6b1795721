"""Calls on the `StreamsBuilder`: streams, tables, global tables and stores."""

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
