"""How a live topic's settings compare with the declared ones, and which differences lose data."""

import math
from collections.abc import Iterator, Mapping
from functools import cache

import attrs

from infra.model.cluster import LiveTopic
from infra.model.compiled import InternalTopic, TopicKind
from infra.planner.actions import ConfigChange
from infra.planner.phrases import duration, whole

_KAFKA_DEFAULTS = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "min.compaction.lag.ms": "0",
    "retention.ms": "604800000",
}


@attrs.frozen
class Misconfiguration:
    """A setting that loses data: `expected` and `found` in words, `change` what puts it right."""

    change: ConfigChange
    expected: str
    found: str
    why: str


@attrs.frozen
class Settings:
    """A live topic's settings; `defaults` are those of the broker for what the topic does not set."""

    live: LiveTopic
    defaults: Mapping[str, str]

    def effective(self, key: str) -> str | None:
        """Return the value that holds, None when only the broker knows."""
        own = self.live.config.get(key)
        return own if own is not None else self.defaults.get(key, _KAFKA_DEFAULTS.get(key))

    def limit(self, key: str) -> float:
        """Return the number that holds; -1, no limit, is infinity."""
        return _limit(self.effective(key) or "0")

    def policies(self) -> frozenset[str]:
        """Return the words of `cleanup.policy`."""
        return _policies(self.effective("cleanup.policy") or "")

    def described(self, key: str) -> str:
        """Return the value that holds in words."""
        value = self.effective(key) or "nothing"
        text = duration(value) if key.endswith(".ms") else value
        return text if key in self.live.config else f"{text}, the broker's default"


def differences(wanted: Mapping[str, str], settings: Settings) -> tuple[ConfigChange, ...]:
    """Return the wanted settings that do not hold, be it by the topic's own or the broker's setting."""
    return tuple(
        ConfigChange(key, settings.live.config.get(key), value)
        for key, value in sorted(wanted.items())
        if not _same(key, settings.effective(key), value)
    )


def foreign(wanted: Mapping[str, str], live: LiveTopic) -> tuple[ConfigChange, ...]:
    """Return the settings of the topic that nobody declared."""
    return tuple(
        ConfigChange(key, value, None) for key, value in sorted(live.config.items()) if key not in wanted
    )


def misconfigurations(topic: InternalTopic, settings: Settings) -> tuple[Misconfiguration, ...]:
    """Return the settings that lose data.

    The conditions of `InternalTopicManager#validate` (Kafka Streams 4.1, without a caller there), and the
    timestamp type. What the document demands itself, by `topic.` configs or a store's overrides, is never
    one.
    """
    return (
        *_cleanup(topic, settings),
        *_retention(topic, settings),
        *_compaction_lag(topic, settings),
        *_timestamps(topic, settings),
    )


def _cleanup(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    wanted = topic.config.get("cleanup.policy")
    if wanted is None:
        return
    unwanted = settings.policies() - _policies(wanted)
    if "delete" in unwanted:
        why = "Kafka deletes old segments, and with them state that a moved task then cannot restore."
    elif "compact" in unwanted and topic.kind is not TopicKind.CHANGELOG:
        why = "Kafka drops all but the newest record of a key, even those that were not processed yet."
    else:
        return
    yield _wrong(topic, settings, "cleanup.policy", wanted, why)


def _retention(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    if "delete" not in settings.policies():
        return
    lost = "state" if topic.kind is TopicKind.CHANGELOG else "records that were not processed yet"
    wanted = topic.config.get("retention.ms")
    if wanted is not None and settings.limit("retention.ms") < _limit(wanted):
        expected = duration(wanted) if int(wanted) < 0 else f"at least {duration(wanted)}"
        why = f"Kafka deletes {lost} before the application has done with it."
        yield _wrong(topic, settings, "retention.ms", expected, why)
    size = settings.live.config.get("retention.bytes", "-1")
    wanted_size = topic.config.get("retention.bytes", "-1")
    if _limit(size) < _limit(wanted_size):
        expected = "not set" if wanted_size == "-1" else f"at least {wanted_size}"
        why = f"Kafka deletes {lost} as soon as a partition grows beyond this size."
        yield _wrong(topic, settings, "retention.bytes", expected, why)


def _compaction_lag(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    wanted = topic.config.get("min.compaction.lag.ms")
    if wanted is not None and settings.limit("min.compaction.lag.ms") < _limit(wanted):
        why = "Kafka compacts versions away that lie within the history retention of the store."
        yield _wrong(topic, settings, "min.compaction.lag.ms", f"at least {duration(wanted)}", why)


def _timestamps(topic: InternalTopic, settings: Settings) -> Iterator[Misconfiguration]:
    wanted = topic.config.get("message.timestamp.type")
    if wanted == "CreateTime" and settings.effective("message.timestamp.type") == "LogAppendTime":
        why = "The broker replaces event times by the time of writing: windows come out wrong."
        yield _wrong(topic, settings, "message.timestamp.type", wanted, why)


def _wrong(topic: InternalTopic, settings: Settings, key: str, expected: str, why: str) -> Misconfiguration:
    change = ConfigChange(key, settings.live.config.get(key), topic.config.get(key))
    return Misconfiguration(change, expected, settings.described(key), why)


def _same(key: str, held: str | None, wanted: str) -> bool:
    if key == "cleanup.policy":
        return _policies(held or "") == _policies(wanted)
    return held == wanted


@cache
def _policies(value: str) -> frozenset[str]:
    return frozenset(word.strip() for word in value.split(",") if word.strip())


def _limit(value: str) -> float:
    """Return the number, infinity for -1, not-a-number for what the broker will refuse."""
    number = whole(value)
    if number is None:
        return math.nan
    return math.inf if number < 0 else number
