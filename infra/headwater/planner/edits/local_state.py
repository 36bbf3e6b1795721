"""How a store keeps its entries on local disks, as far as another way cannot read them.

A changelog has the same bytes for all of these. Kafka Streams finds the files of a window, session or
versioned store by the start of their segments (`AbstractSegments#openExisting`): with another segment
interval, some are not opened, and their entries are missing although the offset of the changelog says that
nothing has to be restored.
"""

from collections.abc import Mapping

from headwater.model.behaviors import StoreSettings, StreamAggregate
from headwater.model.nodes import ChangelogKind, NodeTopology, ProcessorNode, StateStore
from headwater.model.windows import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)
from headwater.planner.phrases import duration_phrase

_MINUTE = 60_000
_OF_HISTORY = ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, _MINUTE))
"""Longest history retention, divisor, least interval (`RocksDbVersionedKeyValueBytesStoreSupplier`)."""
_SEGMENTED = ("window", "timestampedWindow", "session")


def closing_stores(nodes: NodeTopology) -> Mapping[str, StreamAggregate]:
    """Return store → its aggregation, of stores whose windows are emitted when they close."""
    return {
        node.behavior.store: node.behavior
        for node in nodes.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.behavior, StreamAggregate)
        if node.behavior.emit_on_close
    }


def default_is_in_memory(config: Mapping[str, str]) -> bool:
    """Return the type of stores whose type the topology does not name (`TopologyConfig`)."""
    suppliers = config.get("dsl.store.suppliers.class")
    if suppliers is not None:
        return suppliers.strip().endswith("InMemoryDslStoreSuppliers")
    return config.get("default.dsl.store", "").strip() == "in_memory"


def local_files(store: StateStore, closing: StreamAggregate | None, config: Mapping[str, str]) -> str | None:
    """Return a phrase for what the files of a store depend on, may be empty; None if it has no files.

    `closing` is its aggregation if windows are emitted when they close: Kafka Streams then orders the files
    by time. Only the changelog of a document from code is known (`StateStore.base_ms`), not its memory.
    """
    keeps = store.keeps
    if keeps is None:
        return _segments(store.base_ms, is_versioned=store.kind is ChangelogKind.VERSIONED) or None
    if default_is_in_memory(config) if keeps.in_memory is None else keeps.in_memory:
        return None
    is_versioned = keeps.kind == "versionedKeyValue"
    is_segmented = is_versioned or keeps.kind in _SEGMENTED
    segments = _segments(keeps.retention_ms, is_versioned=is_versioned) if is_segmented else ""
    return ", ".join(part for part in (segments, _order(keeps, closing)) if part)


def _order(keeps: StoreSettings, closing: StreamAggregate | None) -> str:
    if keeps.without_timestamps:
        return "values without timestamps"
    # The store of a supplier is the same for both ways to emit.
    if closing is None or keeps.ordered_by_key:
        return ""
    is_indexed = keeps.kind == "session" or isinstance(closing.window, SlidingWindow)
    return "entries in the order of time" + (" with an index of keys" if is_indexed else "")


def _segments(retention_ms: int | None, *, is_versioned: bool) -> str:
    if retention_ms is None:
        return ""
    interval = _history_interval(retention_ms) if is_versioned else max(retention_ms // 2, _MINUTE)
    return f"segments of {duration_phrase(interval)}"


def _history_interval(retention_ms: int) -> int:
    for longest, divisor, least in _OF_HISTORY:
        if retention_ms <= longest:
            return max(retention_ms // divisor, least)
    return max(retention_ms // 24, 300_000)


def windows_of(nodes: NodeTopology) -> Mapping[str, str]:
    """Return store → a phrase for the windows of its aggregation, without their grace period."""
    return {
        node.behavior.store: windows_phrase(node.behavior.window)
        for node in nodes.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.behavior, StreamAggregate)
        if node.behavior.window is not None
    }


def windows_phrase(window: Window) -> str:
    """Return kind and length of windows."""
    match window:
        case TumblingWindow(size_ms=size):
            return f"tumbling, {duration_phrase(size)}"
        case HoppingWindow(size_ms=size, advance_ms=advance):
            return f"hopping, {duration_phrase(size)} every {duration_phrase(advance)}"
        case SlidingWindow(difference_ms=difference):
            return f"sliding, {duration_phrase(difference)}"
        case SessionWindow(gap_ms=gap):
            return f"sessions with a gap of {duration_phrase(gap)}"
        case UnlimitedWindow(start_ms=start):
            return f"unlimited, from {start}"
