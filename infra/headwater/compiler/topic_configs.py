"""Configs of internal topics as Kafka Streams sends them with CreateTopics (facts section 5)."""

from collections.abc import Mapping

from headwater.model.nodes import ChangelogKind, StateStore

_LARGEST_LONG = (1 << 63) - 1
_ONE_DAY_MS = 86_400_000

_REPARTITION = {
    "message.timestamp.type": "CreateTime",
    "cleanup.policy": "delete",
    "segment.bytes": "52428800",
    "retention.ms": "-1",
}
_CLEANUP_POLICY = {
    ChangelogKind.KEY_VALUE: "compact",
    ChangelogKind.VERSIONED: "compact",
    ChangelogKind.WINDOWED: "compact,delete",
    ChangelogKind.WINDOWED_DUPLICATES: "compact,delete",
}


def repartition_config(defaults: Mapping[str, str]) -> Mapping[str, str]:
    """Return the config of a repartition topic (`RepartitionTopicConfig#properties`).

    `defaults` are the application's `topic.` configs.
    """
    return dict(sorted({**_REPARTITION, **defaults}.items()))


def changelog_config(
    store: StateStore, defaults: Mapping[str, str], additional_retention_ms: int
) -> Mapping[str, str]:
    """Return the config of a changelog topic (`…ChangelogTopicConfig#properties`).

    Precedence: Kafka Streams' defaults < `defaults` (the application's `topic.` configs) < the store's
    overrides. The computed retention or compaction lag overrides `topic.` configs, but not the store's
    overrides. `additional_retention_ms` is `windowstore.changelog.additional.retention.ms`.
    """
    config = {"message.timestamp.type": "CreateTime", "cleanup.policy": _CLEANUP_POLICY[store.kind]}
    config |= defaults
    if store.kind is ChangelogKind.WINDOWED_DUPLICATES:
        config["cleanup.policy"] = "delete"
    config |= store.overrides
    base = store.base_ms or 0
    if store.kind is ChangelogKind.VERSIONED:
        config |= _computed(store, "min.compaction.lag.ms", base + _ONE_DAY_MS)
    elif store.kind is not ChangelogKind.KEY_VALUE:
        config |= _computed(store, "retention.ms", base + additional_retention_ms)
    return dict(sorted(config.items()))


def _computed(store: StateStore, key: str, value: int) -> dict[str, str]:
    return {} if key in store.overrides else {key: str(min(value, _LARGEST_LONG))}
