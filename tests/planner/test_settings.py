"""Which configs lose data, for each kind of topic."""

from collections.abc import Mapping

import attrs
import pytest

from headwater.model.cluster import LiveTopic
from headwater.model.compiled import InternalTopic
from headwater.model.nodes import ChangelogKind
from headwater.planner.plans import ConfigChange
from headwater.planner.settings import Misconfiguration, Settings, find_differences, find_misconfigurations
from tests.planner.simulated_cluster import REPARTITION_CONFIG, changelog, repartition

REKEYED = repartition("a-repartition", 1)
COUNTS = changelog("a-changelog", 1)
WINDOWS = changelog("a-changelog", 1, ChangelogKind.WINDOWED)
VERSIONS = changelog("a-changelog", 1, ChangelogKind.VERSIONED)


def overridden(topic: InternalTopic, **config: str) -> InternalTopic:
    changed = {key.replace("_", "."): value for key, value in config.items()}
    return attrs.evolve(topic, config={**topic.config, **changed})


OWN_DELETE = overridden(COUNTS, cleanup_policy="compact,delete", retention_ms="5000")
OWN_RETENTION = overridden(REKEYED, retention_ms="5000")
OWN_SIZE = overridden(REKEYED, retention_bytes="1000")


@pytest.mark.parametrize(
    ("topic", "live", "wrong"),
    [
        (REKEYED, {}, []),
        (REKEYED, {"cleanup.policy": "compact"}, ["cleanup.policy"]),
        (REKEYED, {"cleanup.policy": "compact,delete"}, ["cleanup.policy"]),
        (REKEYED, {"retention.ms": "604800000"}, ["retention.ms"]),
        (REKEYED, {"retention.bytes": "1000"}, ["retention.bytes"]),
        (REKEYED, {"retention.bytes": "-1"}, []),
        (REKEYED, {"segment.bytes": "1"}, []),
        (REKEYED, {"message.timestamp.type": "LogAppendTime"}, ["message.timestamp.type"]),
        (OWN_RETENTION, {}, []),
        (OWN_RETENTION, {"retention.ms": "6000"}, []),
        (OWN_RETENTION, {"retention.ms": "4000"}, ["retention.ms"]),
        (OWN_SIZE, {}, []),
        (OWN_SIZE, {"retention.bytes": "2000"}, []),
        (OWN_SIZE, {"retention.bytes": "999"}, ["retention.bytes"]),
        (COUNTS, {}, []),
        (COUNTS, {"cleanup.policy": "delete"}, ["cleanup.policy"]),
        (COUNTS, {"cleanup.policy": "delete,compact"}, ["cleanup.policy"]),
        (COUNTS, {"cleanup.policy": None}, ["cleanup.policy"]),
        (COUNTS, {"retention.ms": "1000"}, []),
        (COUNTS, {"retention.bytes": "1000"}, []),
        (OWN_DELETE, {}, []),
        (OWN_DELETE, {"retention.ms": "4999"}, ["retention.ms"]),
        (WINDOWS, {}, []),
        (WINDOWS, {"cleanup.policy": "delete,compact"}, []),
        (WINDOWS, {"retention.ms": "90000001"}, []),
        (WINDOWS, {"retention.ms": "-1"}, []),
        (WINDOWS, {"retention.ms": "89999999"}, ["retention.ms"]),
        (WINDOWS, {"retention.ms": None}, []),
        (WINDOWS, {"cleanup.policy": "compact", "retention.ms": "1"}, []),
        (WINDOWS, {"retention.bytes": "1000"}, ["retention.bytes"]),
        (VERSIONS, {}, []),
        (VERSIONS, {"cleanup.policy": "compact,delete"}, ["cleanup.policy"]),
        (VERSIONS, {"min.compaction.lag.ms": "89999999"}, ["min.compaction.lag.ms"]),
        (VERSIONS, {"min.compaction.lag.ms": "90000001"}, []),
        (VERSIONS, {"min.compaction.lag.ms": None}, ["min.compaction.lag.ms"]),
    ],
)
def test_settings_that_lose_data(
    topic: InternalTopic, live: Mapping[str, str | None], wrong: list[str]
) -> None:
    """`live` are the configs that differ from those of the internal topic. None = not set on the topic."""
    config = {key: value for key, value in {**topic.config, **live}.items() if value is not None}
    settings = Settings(LiveTopic(topic.name, "id", 1, 1, config), defaults={})
    assert [fault.change.key for fault in find_misconfigurations(topic, settings)] == wrong


@pytest.mark.parametrize(
    ("topic", "key", "value", "expected", "why"),
    [
        (
            REKEYED,
            "cleanup.policy",
            "compact",
            "delete",
            "Kafka deletes all but the newest record of each key, even records that were not processed yet.",
        ),
        (
            COUNTS,
            "cleanup.policy",
            "delete",
            "compact",
            "Kafka deletes old segments, so a task that moves to another instance cannot restore its state.",
        ),
        (
            OWN_SIZE,
            "retention.bytes",
            "999",
            "at least 1000",
            "Kafka deletes unprocessed records when a partition exceeds this size.",
        ),
    ],
)
def test_what_a_setting_loses(topic: InternalTopic, key: str, value: str, expected: str, why: str) -> None:
    live = LiveTopic(topic.name, "id", 1, 1, {**topic.config, key: value})
    change = ConfigChange(key, value, topic.config.get(key))
    assert find_misconfigurations(topic, Settings(live, {})) == (
        Misconfiguration(change, expected, value, why),
    )


@pytest.mark.parametrize("invalid", ["7d", "", "1.5", "٣", "9" * 30])
def test_declared_configs_that_are_not_numbers_are_not_compared(invalid: str) -> None:
    topic = overridden(VERSIONS, retention_ms=invalid, retention_bytes=invalid, min_compaction_lag_ms=invalid)
    live = LiveTopic(topic.name, "id", 1, 1, {**VERSIONS.config, "cleanup.policy": "compact,delete"})
    assert [fault.change.key for fault in find_misconfigurations(topic, Settings(live, {}))] == [
        "cleanup.policy"
    ]


def test_a_broker_default_equal_to_the_declared_config_is_no_difference() -> None:
    config = {key: value for key, value in REPARTITION_CONFIG.items() if key != "segment.bytes"}
    live = LiveTopic("a-repartition", "id", 1, 1, config)
    assert not find_differences(REPARTITION_CONFIG, Settings(live, {"segment.bytes": "52428800"}))
    (change,) = find_differences(REPARTITION_CONFIG, Settings(live, {"segment.bytes": "1073741824"}))
    assert (change.key, change.live, change.declared) == ("segment.bytes", None, "52428800")


def test_a_broker_default_that_loses_data_is_reported_as_default() -> None:
    live = LiveTopic("a-changelog", "id", 1, 1, {})
    (fault,) = find_misconfigurations(COUNTS, Settings(live, {"cleanup.policy": "delete"}))
    assert fault.found == "delete, the broker's default"


def test_the_order_of_cleanup_policies_does_not_matter() -> None:
    live = LiveTopic("a-changelog", "id", 1, 1, {**WINDOWS.config, "cleanup.policy": "delete, compact"})
    assert not find_differences(WINDOWS.config, Settings(live, {}))
