"""The defaults of the brokers, where every topic sets its own values."""

from collections.abc import Mapping
from typing import cast

import pytest
from confluent_kafka.admin import ConfigEntry, ConfigSource  # type: ignore[attr-defined]

from headwater.kafka.topic_settings import TopicSettings

_OWN, _BROKER, _DEFAULT = (
    cast("ConfigSource", source.value)  # the library annotates the enum and gives its number
    for source in (
        ConfigSource.DYNAMIC_TOPIC_CONFIG,
        ConfigSource.STATIC_BROKER_CONFIG,
        ConfigSource.DEFAULT_CONFIG,
    )
)


def entry(name: str, value: str | None, source: ConfigSource = _OWN, **synonyms: str | None) -> ConfigEntry:
    """Return a setting; `synonyms` are settings of the broker, named with underscores."""
    others = {key.replace("_", "."): text for key, text in synonyms.items()}
    found = {key: ConfigEntry(key, text, source=_BROKER, is_synonym=True) for key, text in others.items()}
    return ConfigEntry(name, value, source=source, synonyms=found)


def defaults(own: ConfigEntry, *broker: ConfigEntry) -> Mapping[str, str]:
    settings = TopicSettings()
    settings.add(["topic"], {own.name: own})
    return settings.all_defaults({each.name: each for each in broker})


@pytest.mark.parametrize(
    ("own", "broker", "expected"),
    [
        (entry("max.message.bytes", "5", message_max_bytes="7"), (), "7"),
        (entry("retention.ms", "5", log_retention_ms=None, log_retention_hours="24"), (), "86400000"),
        (entry("retention.ms", "5", log_retention_minutes="3"), (), "180000"),
        (entry("segment.ms", "5", log_roll_ms="9", log_roll_hours="24"), (), "9"),
        (entry("retention.ms", "5", log_retention_hours="-1"), (), None),
        (entry("min.insync.replicas", "5", min_insync_replicas="1"), (), None),
        (
            entry("min.insync.replicas", "5", min_insync_replicas="1"),
            (entry("min.insync.replicas", "2", _BROKER),),
            "2",
        ),
        (
            entry("flush.ms", "5", log_flush_interval_ms="1"),
            (entry("log.flush.interval.ms", "8", _BROKER),),
            "8",
        ),
        (entry("retention.ms", "7", _DEFAULT), (), "7"),
        (entry("vendor.tier", "cold"), (), None),
    ],
    ids=[
        *("synonym", "hours", "minutes", "priority", "no limit in hours", "same name", "same name, broker"),
        *("value of the broker", "not set", "no synonym"),
    ],
)
def test_the_default_of_a_setting_is_known_from_its_synonyms(
    own: ConfigEntry, broker: tuple[ConfigEntry, ...], expected: str | None
) -> None:
    assert defaults(own, *broker).get(own.name) == expected


def test_harmful_defaults_are_known_before_the_first_topic_exists() -> None:
    broker = [
        entry("log.retention.bytes", "1000", _BROKER),
        entry("log.message.timestamp.before.max.ms", "86400000", _BROKER),
        entry("message.max.bytes", "200000", _BROKER),
        entry("unclean.leader.election.enable", "true", _BROKER),
        entry("log.retention.hours", "24", _BROKER),
    ]
    assert TopicSettings().all_defaults({each.name: each for each in broker}) == {
        "retention.bytes": "1000",
        "message.timestamp.before.max.ms": "86400000",
        "max.message.bytes": "200000",
        "unclean.leader.election.enable": "true",
    }
