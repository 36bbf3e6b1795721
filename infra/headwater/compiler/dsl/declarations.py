"""What a node of the DSL graph adds to the topology: one frozen class for each type of `GraphNode`.

Parents that are not named here are the graph node's parents at the time of writing, because optimizations may
change them.
"""

import attrs

from headwater.compiler.dsl.stores import LazyStore, Store
from headwater.model.behaviors import Behavior
from headwater.model.formats import (
    DEFAULT_RECORD_FORMAT,
    RecordFormat,
    SinkSettings,
    SourceSettings,
)


@attrs.define(eq=False)
class OldValues:
    """Whether a table's node sends old values; `source` is the upstream store that this needs."""

    upstream: "tuple[OldValues, ...]" = ()
    source: LazyStore | None = None
    enabled: bool = False

    @classmethod
    def derived(cls, upstream: "OldValues") -> "OldValues":
        """Return the value for a table without a store of its own."""
        return cls((upstream,), upstream.source)

    def enable(self, *, only_if_materialized: bool = False) -> None:
        """Send old values; with `only_if_materialized` only if that creates no further store."""
        if only_if_materialized and self.source is not None and not self.source.needed:
            return
        pending = [self]
        while pending:
            each = pending.pop()
            if not each.enabled:
                each.enabled = True
                pending.extend(each.upstream)


@attrs.frozen
class Declaration:
    """What a node of the graph adds to the topology."""


@attrs.frozen
class StoreDeclaration(Declaration):
    """`addStateStore`: a store that processors refer to by name."""

    store: Store


@attrs.frozen
class SourceDeclaration(Declaration):
    """A stream source; sources of the same topics or the same pattern are merged before writing."""

    topics: tuple[str, ...] = ()
    pattern: str | None = None
    offset_reset: str | None = None
    reads: SourceSettings | None = None


@attrs.frozen
class TableSourceDeclaration(Declaration):
    """`table` and `globalTable`: a source and the processor, with the store if it is needed."""

    topic: str
    source: str
    processor: str
    lazy_store: LazyStore
    is_global: bool = False
    reads: SourceSettings | None = None
    old_values: OldValues | None = None


@attrs.frozen
class GlobalStoreDeclaration(Declaration):
    """`addGlobalStore`."""

    topic: str
    source: str
    processor: str
    store: Store
    processor_class: str | None = None
    reads: SourceSettings | None = None


@attrs.frozen
class ProcessorDeclaration(Declaration):
    """A processor with the stores of its supplier and the names of connected stores.

    `lazy_store` is the store of a `toTable` or of a foreign-key join's result. `required_history_ms` is the
    grace of a stream-table join: each connected store must be versioned with at least that history retention.
    `behavior` is completed at the time of writing with `lazy_store` and `old_values`. `connected_first`: the
    stores of the supplier are connected last, as before 4.0.
    """

    name: str
    stores: tuple[Store, ...] = ()
    connected: tuple[str, ...] = ()
    lazy_store: LazyStore | None = None
    required_history_ms: int | None = None
    behavior: Behavior | None = None
    old_values: OldValues | None = None
    connected_first: bool = False


@attrs.frozen
class SinkDeclaration(Declaration):
    """A sink node; `topic` None = the `extractor` chooses the topic of each record."""

    topic: str | None = None
    extractor: str | None = None
    writes: SinkSettings | None = None


@attrs.frozen
class InternalSourceDeclaration(Declaration):
    """The source that reads a foreign-key join's internal topic."""

    topic: str
    reads: SourceSettings | None = None


@attrs.frozen
class RepartitionDeclaration(Declaration):
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
class StreamJoinDeclaration(Declaration):
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
class SelfJoinDeclaration(Declaration):
    """A stream-stream join after the optimization `single.store.self.join`."""

    windowed: str
    merge: str
    store: Store
    behavior: Behavior | None = None


@attrs.frozen
class TableJoinDeclaration(Declaration):
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
    old_values: OldValues | None = None
