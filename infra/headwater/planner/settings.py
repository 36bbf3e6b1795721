"""Compare the settings of a live topic with the declared ones, and find those that lose or remove data."""

import math
from collections.abc import Iterator, Mapping
from functools import cache

import attrs

from headwater.compiler.java.config_values import parse_whole
from headwater.model.cluster import LiveTopic
from headwater.model.compiled import InternalTopic, TopicKind
from headwater.planner.phrases import explain_milliseconds
from headwater.planner.plans import ConfigChange, TopicAction

_NO_LIMIT = "9223372036854775807"
_KAFKA_DEFAULTS = {
    "cleanup.policy": "delete",
    "compression.gzip.level": "-1",
    "compression.lz4.level": "9",
    "compression.type": "producer",
    "compression.zstd.level": "3",
    "delete.retention.ms": "86400000",
    "file.delete.delay.ms": "60000",
    "flush.messages": _NO_LIMIT,
    "flush.ms": _NO_LIMIT,
    "follower.replication.throttled.replicas": "",
    "index.interval.bytes": "4096",
    "leader.replication.throttled.replicas": "",
    "local.retention.bytes": "-2",
    "local.retention.ms": "-2",
    "max.compaction.lag.ms": _NO_LIMIT,
    "max.message.bytes": "1048588",
    "message.timestamp.after.max.ms": "3600000",
    "message.timestamp.before.max.ms": _NO_LIMIT,
    "message.timestamp.type": "CreateTime",
    "min.cleanable.dirty.ratio": "0.5",
    "min.compaction.lag.ms": "0",
    "min.insync.replicas": "1",
    "preallocate": "false",
    "remote.log.copy.disable": "false",
    "remote.log.delete.on.disable": "false",
    "remote.storage.enable": "false",
    "retention.bytes": "-1",
    "retention.ms": "604800000",
    "segment.bytes": "1073741824",
    "segment.index.bytes": "10485760",
    "segment.jitter.ms": "0",
    "segment.ms": "604800000",
    "unclean.leader.election.enable": "false",
}
"""Kafka's own defaults, for settings whose default on the brokers is not known."""


@attrs.frozen
class Misconfiguration:
    """A setting that loses data: `expected` and `found` are texts, `change` is what repairs it."""

    change: ConfigChange
    expected: str
    found: str
    why: str


@attrs.frozen
class Settings:
    """A live topic's settings. `defaults` are the broker's values for keys that the topic does not set."""

    live: LiveTopic
    defaults: Mapping[str, str]

    def effective_value(self, key: str) -> str | None:
        """Return the effective value; None if only the broker knows it."""
        own = self.live.config.get(key)
        return own if own is not None else self.inherited_value(key)

    def inherited_value(self, key: str) -> str | None:
        """Return the value of topics that do not set the key; None if only the broker knows it."""
        return self.defaults.get(key, _KAFKA_DEFAULTS.get(key))

    def effective_limit(self, key: str) -> float:
        """Return the effective number; -1 (no limit) is infinity."""
        return _parse_limit(self.effective_value(key) or "0")

    def cleanup_policies(self) -> frozenset[str]:
        """Return the policies in `cleanup.policy`."""
        return _cleanup_policies(self.effective_value("cleanup.policy") or "")

    def effective_text(self, key: str) -> str:
        """Return the effective value as a text."""
        value = self.effective_value(key) or "nothing"
        text = explain_milliseconds(value) if key.endswith(".ms") else value
        return text if key in self.live.config else f"{text}, the broker's default"


def find_differences(declared: Mapping[str, str], settings: Settings) -> tuple[ConfigChange, ...]:
    """Return the declared settings whose effective value differs."""
    return tuple(
        ConfigChange(key, settings.live.config.get(key), value)
        for key, value in sorted(declared.items())
        if not _is_same(key, settings.effective_value(key), value)
    )


def undeclared_settings(declared: Mapping[str, str], settings: Settings) -> tuple[ConfigChange, ...]:
    """Return the settings of the topic that its document does not declare and that change its behavior.

    Some brokers and tools store every default as a setting of the topic itself. It has no effect.
    """
    return tuple(
        ConfigChange(key, value, None)
        for key, value in sorted(settings.live.config.items())
        if key not in declared and not _is_same(key, settings.inherited_value(key), value)
    )


def find_misconfigurations(topic: InternalTopic, settings: Settings) -> tuple[Misconfiguration, ...]:
    """Return the settings that lose data.

    They are those that `InternalTopicManager#validate` rejects (Kafka Streams 4.1 never calls it), and the
    timestamp type. A value that the document sets itself, with `topic.` configs or overrides of a store, is
    never one.
    """
    if settings.live.config == topic.config:  # as for most topics
        return ()
    return (
        *_check_cleanup(topic, settings),
        *_check_retention(topic, settings),
        *_compaction_lag(topic, settings),
        *_check_timestamps(topic, settings),
    )


_REMOVING = ("cleanup.policy", "retention.ms", "retention.bytes", "min.compaction.lag.ms")
"""Settings that decide which records Kafka removes."""


def removing_changes(
    live: LiveTopic, action: TopicAction, defaults: Mapping[str, str]
) -> tuple[ConfigChange, ...]:
    """Return the changes of `action` with which Kafka may remove records that it keeps now."""
    changes = tuple(change for change in action.changes if change.key in _REMOVING)
    if not changes:
        return ()
    before = _Kept.from_settings(Settings(live, defaults))
    after = _Kept.from_settings(Settings(attrs.evolve(live, config=action.config), defaults))
    return changes if after.removes_more(before) else ()


@attrs.frozen
class _Kept:
    """Which records of a topic Kafka keeps: all of a key, or the newest; for how long; how many bytes."""

    all_of_a_key: bool
    milliseconds: float
    size: float
    uncompacted_milliseconds: float

    @classmethod
    def from_settings(cls, settings: Settings) -> "_Kept":
        policies = settings.cleanup_policies()
        is_deleted, is_compacted = "delete" in policies, "compact" in policies
        size = _parse_limit(settings.effective_value("retention.bytes") or "-1")
        return cls(
            all_of_a_key=not is_compacted,
            milliseconds=settings.effective_limit("retention.ms") if is_deleted else math.inf,
            size=size if is_deleted else math.inf,
            uncompacted_milliseconds=settings.effective_limit("min.compaction.lag.ms")
            if is_compacted
            else math.inf,
        )

    def removes_more(self, before: "_Kept") -> bool:
        return (
            (before.all_of_a_key and not self.all_of_a_key)
            or self.milliseconds < before.milliseconds
            or self.size < before.size
            or self.uncompacted_milliseconds < before.uncompacted_milliseconds
        )


def _check_cleanup(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    declared = topic.config.get("cleanup.policy")
    if declared is None:
        return
    unexpected = settings.cleanup_policies() - _cleanup_policies(declared)
    if "delete" in unexpected:
        why = "Kafka deletes old segments, so a task that moves to another instance cannot restore its state."
    elif "compact" in unexpected and topic.kind is not TopicKind.CHANGELOG:
        why = "Kafka deletes all but the newest record of each key, even records that were not processed yet."
    else:
        return
    yield _wrong_setting(topic, settings, "cleanup.policy", declared, why)


def _check_retention(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    if "delete" not in settings.cleanup_policies():
        return
    lost = "state" if topic.kind is TopicKind.CHANGELOG else "unprocessed records"
    declared = topic.config.get("retention.ms")
    if declared is not None and settings.effective_limit("retention.ms") < _parse_limit(declared):
        expected = (
            explain_milliseconds(declared)
            if int(declared) < 0
            else f"at least {explain_milliseconds(declared)}"
        )
        why = f"Kafka deletes {lost} that the application still needs."
        yield _wrong_setting(topic, settings, "retention.ms", expected, why)
    size = settings.live.config.get("retention.bytes", "-1")
    declared_size = topic.config.get("retention.bytes", "-1")
    if _parse_limit(size) < _parse_limit(declared_size):
        expected = "not set" if declared_size == "-1" else f"at least {declared_size}"
        why = f"Kafka deletes {lost} when a partition exceeds this size."
        yield _wrong_setting(topic, settings, "retention.bytes", expected, why)


def _compaction_lag(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    declared = topic.config.get("min.compaction.lag.ms")
    if declared is not None and settings.effective_limit("min.compaction.lag.ms") < _parse_limit(declared):
        why = "Kafka deletes versions that are within the history retention of the store."
        yield _wrong_setting(
            topic, settings, "min.compaction.lag.ms", f"at least {explain_milliseconds(declared)}", why
        )


def _check_timestamps(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    declared = topic.config.get("message.timestamp.type")
    if declared == "CreateTime" and settings.effective_value("message.timestamp.type") == "LogAppendTime":
        why = "The broker replaces event times by the time of the write, so the results of windows are wrong."
        yield _wrong_setting(topic, settings, "message.timestamp.type", declared, why)


def _wrong_setting(
    topic: InternalTopic, settings: Settings, key: str, expected: str, why: str
) -> Misconfiguration:
    change = ConfigChange(key, settings.live.config.get(key), topic.config.get(key))
    return Misconfiguration(change, expected, settings.effective_text(key), why)


def _is_same(key: str, held: str | None, declared: str) -> bool:
    if key == "cleanup.policy":
        return _cleanup_policies(held or "") == _cleanup_policies(declared)
    return held == declared


@cache
def _cleanup_policies(value: str) -> frozenset[str]:
    return frozenset(word.strip() for word in value.split(",") if word.strip())


def _parse_limit(value: str) -> float:
    """Return the number, infinity for -1, not-a-number for a value that the broker refuses."""
    number = parse_whole(value)
    if number is None:
        return math.nan
    return math.inf if number < 0 else number
