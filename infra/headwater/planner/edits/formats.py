"""The formats of records in internal topics: which of them a store or an operator can read afterwards.

A changelog has the bytes that the store's `StateSerdes` write, in the layout of its kind. Records
have fields of their own for timestamps and headers, so these do not change the layout (`RecordConverters`,
KIP-258, KIP-889, KIP-1271).
"""

from collections.abc import Mapping

import attrs

from headwater.model.behaviors import DEFAULT_FORMAT, Format, RecordFormat, SourceSettings, StoreSettings
from headwater.model.nodes import ChangelogKind, NodeTopology, SourceNode, StateStore

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


@attrs.frozen
class Layout:
    """The layout of a topic's records; `key`, `value` and `right` are serdes, None = not known.

    `details` do not change the bytes: kind of the store and length of its windows in milliseconds.
    """

    form: str
    key: str | None = None
    value: str | None = None
    right: str | None = None
    kind: str = attrs.field(default="", eq=False)
    window_ms: int | None = attrs.field(default=None, eq=False)

    @property
    def is_known(self) -> bool:
        """Return whether the serdes are known."""
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


def store_layout(store: StateStore, config: Mapping[str, str]) -> Layout:
    """Return the layout of a store's changelog; `config` has the application's default serdes."""
    keeps = store.keeps
    if keeps is None:
        return Layout(_KINDS[store.kind], kind=store.kind.value)
    return Layout(
        _LAYOUTS[keeps.kind],
        _serde_name(keeps.format.key, config, "key"),
        _value_serde(keeps, config),
        _serde_name(keeps.right.value, config, "value") if keeps.right is not None else None,
        kind=keeps.kind,
        window_ms=keeps.window_size_ms,
    )


def _value_serde(keeps: StoreSettings, config: Mapping[str, str]) -> str:
    # The value of a subscription store is the left table's key.
    of = "key" if keeps.kind == "subscription" else "value"
    return _serde_name(keeps.format.value, config, of)


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
    return Layout(form, *_serdes_of(reads.format, config, of_value))


def _serdes_of(record: RecordFormat, config: Mapping[str, str], of_value: str) -> tuple[str, str]:
    return _serde_name(record.key, config, "key"), _serde_name(record.value, config, of_value)


def _serde_name(format_: Format | None, config: Mapping[str, str], part: str) -> str:
    default = config.get(f"default.{part}.serde", "the default serde")
    if format_ is None:
        return default
    name = default if format_.name == DEFAULT_FORMAT else format_.name
    return name if format_.window is None else f"{format_.window}-windowed {name}"
