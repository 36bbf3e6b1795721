"""Kind, retention and overrides of a store from the config of its changelog topic."""

from collections.abc import Mapping

import attrs

from headwater.compiler.described.stores import StoreFinding
from headwater.compiler.described.structure import Structure
from headwater.compiler.streams_config import DAY_MS, StreamsConfig
from headwater.compiler.topic_configs import changelog_config
from headwater.model.cluster import LiveTopic
from headwater.model.nodes import ChangelogKind, StateStore
from headwater.model.topology import StoreDetail

_FOREVER = (1 << 63) - 1


def live_detail(
    live: LiveTopic, finding: StoreFinding, structure: Structure, streams: StreamsConfig
) -> StoreDetail:
    """Return kind and retention that compile to the config of `live`; other settings become overrides.

    A single setting decides nothing: an application may set each of them itself. A cleanup policy without
    compaction is that of a store with duplicates only if the changelog has a computed retention, and no
    aggregation, whose stores have no duplicates, uses the store.
    """
    additional_ms = streams.additional_retention_ms
    kind = _kind(live.config, finding, structure, additional_ms)
    if kind is ChangelogKind.WINDOWED_DUPLICATES:
        retention_ms = _base(live.config, "retention.ms", additional_ms)
        detail = StoreDetail("window", retention_ms, retain_duplicates=True)
    elif kind is ChangelogKind.WINDOWED:
        of_join = any(user.name in structure.windowed for user in structure.users.get(finding.name, ()))
        detail = StoreDetail(
            "window" if of_join else "windowed", _base(live.config, "retention.ms", additional_ms)
        )
    elif kind is ChangelogKind.VERSIONED:
        detail = StoreDetail("versionedKeyValue", _base(live.config, "min.compaction.lag.ms", DAY_MS))
    else:
        detail = StoreDetail("timestampedKeyValue" if structure.is_of_table(finding.name) else "keyValue")
    computed = StateStore("", kind, base_ms=detail.retention_ms)
    expected = changelog_config(computed, streams.topic_overrides, additional_ms)
    overrides = {key: value for key, value in sorted(live.config.items()) if expected.get(key) != value}
    return attrs.evolve(detail, overrides=overrides)


def _kind(
    config: Mapping[str, str], finding: StoreFinding, structure: Structure, additional_ms: int
) -> ChangelogKind:
    """Return the kind that the text shows, otherwise the one whose settings the changelog has."""
    given = finding.detail is not None and finding.detail.kind is not None
    certain = finding.effective_kind if given else finding.kind
    if certain is not None and not (certain is ChangelogKind.KEY_VALUE and finding.may_be_versioned):
        return certain
    policy = set(config.get("cleanup.policy", "compact").replace(" ", "").split(","))
    has_retention = _base(config, "retention.ms", additional_ms) is not None
    if _base(config, "min.compaction.lag.ms", DAY_MS) is not None and "delete" not in policy:
        return ChangelogKind.VERSIONED
    if certain is None and has_retention and "delete" in policy:
        users = structure.users.get(finding.name, ())
        aggregates = any(structure.is_aggregation(user.name) for user in users)
        has_duplicates = "compact" not in policy and not aggregates
        return ChangelogKind.WINDOWED_DUPLICATES if has_duplicates else ChangelogKind.WINDOWED
    return ChangelogKind.KEY_VALUE


def _base(config: Mapping[str, str], key: str, added: int) -> int | None:
    """Return the duration in milliseconds from which `key` was computed, None if it was not computed."""
    value = config.get(key, "")
    if not value.isdecimal():
        return None
    if int(value) == _FOREVER:
        return _FOREVER
    return int(value) - added if int(value) >= added else None
