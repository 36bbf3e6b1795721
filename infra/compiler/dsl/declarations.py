"""What a node of the DSL graph writes into the topology: one frozen class for each form.

Parents that are not named here are the graph node's parents at the time of writing (the optimization may
change them).
"""

import attrs

from infra.compiler.dsl.old_values import Changes
from infra.compiler.dsl.stores import Reserved, Store
from infra.model.behaviors import DEFAULT_RECORD_FORMAT, Behavior, RecordFormat, SinkSettings, SourceSettings


@attrs.frozen
class WritesStore:
    """`addStateStore`: a store that processors refer to by name."""

    store: Store


@attrs.frozen
class WritesSource:
    """A stream source; sources of the same topics or the same pattern are merged before writing."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    offset_reset: str | None = None
    reads: SourceSettings | None = None


@attrs.frozen
class WritesTableSource:
    """`table` and `globalTable`: a source and the processor that fills the store, if that is needed."""

    topic: str
    source: str
    processor: str
    reserved: Reserved
    is_global: bool = False
    reads: SourceSettings | None = None
    changes: Changes | None = None


@attrs.frozen
class WritesGlobalStore:
    """`addGlobalStore`."""

    topic: str
    source: str
    processor: str
    store: Store
    processor_class: str | None = None
    reads: SourceSettings | None = None


@attrs.frozen
class WritesProcessor:
    """A processor with the stores of its supplier, and the names of stores that it is connected to.

    `reserved` is the store of a `toTable` or of a foreign-key result: it exists only if something needs it.
    `demands_history_ms` is the grace of a stream-table join: each connected store must be versioned and keep
    that long. `behavior` is completed while writing: with the reserved store, with what `changes` says.
    """

    name: str
    stores: tuple[Store, ...] = ()
    connected: tuple[str, ...] = ()
    reserved: Reserved | None = None
    demands_history_ms: int | None = None
    behavior: Behavior | None = None
    changes: Changes | None = None


@attrs.frozen
class WritesSink:
    topic: str | None = None
    extractor: str | None = None
    writes: SinkSettings | None = None


@attrs.frozen
class WritesInternalSource:
    """The source that reads a foreign-key join's internal topic."""

    topic: str
    reads: SourceSettings | None = None


@attrs.frozen
class WritesRepartition:
    """Filter, sink and source of a repartition topic; `filter` None = `KTable#groupBy`, which has none.

    `mergeable` = `merge.repartition.topics` may move it (never an explicit `repartition()`).
    """

    topic: str
    sink: str
    source: str
    filter: str | None = None
    partitions: int | None = None
    mergeable: bool = False
    explicit: bool = False
    record: RecordFormat = DEFAULT_RECORD_FORMAT
    partitioner: str | None = None
    carries_changes: bool = False


@attrs.frozen
class WritesStreamJoin:
    """Both sides and the merge of a stream-stream join; the windowed nodes are graph nodes of their own."""

    this_windowed: str
    other_windowed: str
    this_join: str
    other_join: str
    merge: str
    this_store: Store
    other_store: Store
    shared_store: Store | None = None
    this_behavior: Behavior | None = None
    other_behavior: Behavior | None = None


@attrs.frozen
class WritesSelfJoin:
    """What `single.store.self.join` makes of a stream-stream join."""

    windowed: str
    merge: str
    store: Store
    behavior: Behavior | None = None


@attrs.frozen
class WritesTableJoin:
    """The two sides and the merge of a table-table join; `this`/`other` are the joined tables' processors."""

    this: str
    other: str
    this_join: str
    other_join: str
    merge: str
    this_stores: tuple[str, ...]
    other_stores: tuple[str, ...]
    store: Store | None = None
    this_behavior: Behavior | None = None
    other_behavior: Behavior | None = None
    changes: Changes | None = None


Declaration = (
    WritesStore
    | WritesSource
    | WritesTableSource
    | WritesGlobalStore
    | WritesProcessor
    | WritesSink
    | WritesInternalSource
    | WritesRepartition
    | WritesStreamJoin
    | WritesSelfJoin
    | WritesTableJoin
)
