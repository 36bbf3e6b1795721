"""How a store or a repartition topic keeps its entries: the bytes of its topic, and files on local disks.

The formats of records in internal topics decide which of them a store or an operator can read afterwards. A
changelog has the bytes that the store's `StateSerdes` write, in the layout of its kind. Records have fields
of their own for timestamps and headers, so these do not change the layout (`RecordConverters`, KIP-258,
KIP-889, KIP-1271).

A changelog has the same bytes for all kinds of files. Kafka Streams finds the files of a window, session or
versioned store by the start of their segments (`AbstractSegments#openExisting`): with another segment
interval, some are not opened, and their entries are missing although the offset of the changelog says that
nothing has to be restored.
"""

from collections.abc import Mapping

import attrs

from headwater.model.behaviors import StreamAggregate
from headwater.model.formats import (
    DEFAULT_FORMAT,
    Format,
    SourceSettings,
    StoreSettings,
)
from headwater.model.nodes import (
    ChangelogKind,
    NodeTopology,
    ProcessorNode,
    SourceNode,
    StateStore,
)
from headwater.model.windows import (
    HoppingWindow,
    SessionWindow,
    SlidingWindow,
    TumblingWindow,
    UnlimitedWindow,
    Window,
)
from headwater.planner.phrases import duration_phrase

_LAYOUTS: Mapping[str, str] = {
    "keyValue": "key-value",
    "timestampedKeyValue": "key-value",
    "versionedKeyValue": "key-value",
    "window": "window",
    "timestampedWindow": "window",
    "session": "session",
    "list": "records of an outer join",
    "suppress": "suppress buffer",
    "subscription": "foreign-key subscriptions",
    "joinBuffer": "buffer of a join",
}
_KINDS: Mapping[ChangelogKind, str] = {
    ChangelogKind.KEY_VALUE: "key-value",
    ChangelogKind.VERSIONED: "key-value",
    ChangelogKind.WINDOWED: "window",
    ChangelogKind.WINDOWED_DUPLICATES: "window",
}

_MINUTE = 60_000
_OF_HISTORY = ((60_000, 3, 2_000), (300_000, 5, 20_000), (3_600_000, 12, _MINUTE))
"""Longest history retention, divisor, least interval (`RocksDbVersionedKeyValueBytesStoreSupplier`)."""
_SEGMENTED = ("window", "timestampedWindow", "session")


@attrs.frozen
class Layout:
    """The layout of a topic's records; `key`, `value` and `right` are serdes, None = not known.

    `kind` of the store, length of its windows in milliseconds, `windows` of its aggregation and `files` on
    local disks do not change the bytes of the changelog; `files` is None if the store has no files.
    """

    form: str
    key: str | None = None
    value: str | None = None
    right: str | None = None
    kind: str = attrs.field(default="", eq=False)
    window_ms: int | None = attrs.field(default=None, eq=False)
    files: str | None = attrs.field(default=None, eq=False)
    windows: str = attrs.field(default="", eq=False)

    @property
    def is_known(self) -> bool:
        return self.key is not None

    def difference(self, other: "Layout") -> str:
        """Return why records of this layout cannot be read with `other`; empty if they can."""
        if self.form != other.form:
            return f"its records have the format of {self.form}, not of {other.form}"
        for part in ("key", "value", "right"):
            before, after = getattr(self, part), getattr(other, part)
            if before != after and before is not None and after is not None:
                return f"its {'values' if part == 'right' else f'{part}s'} are {before}, not {after}"
        return ""


def store_layout(
    store: StateStore, config: Mapping[str, str], closing: StreamAggregate | None = None
) -> Layout:
    """Return the layout of a store's changelog; `config` has the application's default serdes.

    `closing` is the aggregation of the store, if it emits windows when they close.
    """
    keeps = store.keeps
    files = local_files(store, closing, config)
    if keeps is None:
        return Layout(_KINDS[store.kind], kind=store.kind.value, files=files)
    return Layout(
        _LAYOUTS[keeps.kind],
        serde_name(keeps.format.key, config, "key"),
        _value_serde(keeps, config),
        serde_name(keeps.right.value, config, "value") if keeps.right is not None else None,
        kind=keeps.kind,
        window_ms=keeps.window_size_ms,
        files=files,
    )


def _value_serde(keeps: StoreSettings, config: Mapping[str, str]) -> str:
    # The value of a subscription store is the left table's key.
    of = "key" if keeps.kind == "subscription" else "value"
    return serde_name(keeps.format.value, config, of)


def repartition_layouts(nodes: NodeTopology, config: Mapping[str, str]) -> Mapping[str, Layout]:
    """Return repartition topic, without prefix → the layout in which its source node reads it."""
    internal = {topic.name for topic in nodes.repartition_topics}
    return {
        topic: _source_layout(node.reads, config)
        for node in nodes.nodes
        if isinstance(node, SourceNode)
        for topic in node.topics
        if topic in internal
    }


def _source_layout(reads: SourceSettings | None, config: Mapping[str, str]) -> Layout:
    if reads is None:
        return Layout("records")
    form = "old and new values" if reads.carries_changes else reads.foreign_key or "records"
    of_value = "key" if reads.foreign_key == "subscription" else "value"
    key = serde_name(reads.format.key, config, "key")
    return Layout(form, key, serde_name(reads.format.value, config, of_value))


def serde_name(format_: Format | None, config: Mapping[str, str], part: str) -> str:
    """Return the name of a serde; a default one has the settings that decide what it writes."""
    default = _default_serde(config, part)
    if format_ is None:
        return default
    name = default if format_.name == DEFAULT_FORMAT else format_.name
    return name if format_.window is None else f"{format_.window}-windowed {name}"


def _default_serde(config: Mapping[str, str], part: str) -> str:
    name = config.get(f"default.{part}.serde", "the default serde")
    kind = name.rpartition(".")[2].rpartition("$")[2]
    keys = {
        "ListSerde": (f"default.list.{part}.serde.inner", f"default.list.{part}.serde.type"),
        "TimeWindowedSerde": ("windowed.inner.class.serde", "window.size.ms"),
        "SessionWindowedSerde": ("windowed.inner.class.serde",),
    }.get(kind, ())
    settings = [f"{key}={config[key]}" for key in keys if key in config]
    return f"{name} ({', '.join(settings)})" if settings else name


def closing_stores(nodes: NodeTopology) -> Mapping[str, StreamAggregate]:
    """Return store → its aggregation, of stores whose windows are emitted when they close."""
    return {
        node.behavior.store: node.behavior
        for node in nodes.nodes
        if isinstance(node, ProcessorNode) and isinstance(node.behavior, StreamAggregate)
        if node.behavior.emit_on_close
    }


def default_is_in_memory(config: Mapping[str, str]) -> bool:
    """Return whether stores are in memory whose type the topology does not name (`TopologyConfig`)."""
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
        return _describe_segments(store.base_ms, is_versioned=store.kind is ChangelogKind.VERSIONED) or None
    if default_is_in_memory(config) if keeps.in_memory is None else keeps.in_memory:
        return None
    is_versioned = keeps.kind == "versionedKeyValue"
    is_segmented = is_versioned or keeps.kind in _SEGMENTED
    segments = _describe_segments(keeps.retention_ms, is_versioned=is_versioned) if is_segmented else ""
    return ", ".join(part for part in (segments, _describe_order(keeps, closing)) if part)


def _describe_order(keeps: StoreSettings, closing: StreamAggregate | None) -> str:
    if keeps.without_timestamps:
        return "values without timestamps"
    # The store of a supplier is the same for both ways to emit.
    if closing is None or keeps.ordered_by_key:
        return ""
    is_indexed = keeps.kind == "session" or isinstance(closing.window, SlidingWindow)
    return "entries in the order of time" + (" with an index of keys" if is_indexed else "")


def _describe_segments(retention_ms: int | None, *, is_versioned: bool) -> str:
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
