"""Configs of internal topics; the values are those that Kafka Streams 4.1.1 sent (facts 5)."""

import pytest

from tests.compiler.applications import compiled, topic, windowed_count

REPARTITION = {
    "cleanup.policy": "delete",
    "message.timestamp.type": "CreateTime",
    "retention.ms": "-1",
    "segment.bytes": "52428800",
}
COMPACTED = {"cleanup.policy": "compact", "message.timestamp.type": "CreateTime"}


def windowed(retention: str, policy: str = "compact,delete") -> dict[str, str]:
    return {"cleanup.policy": policy, "message.timestamp.type": "CreateTime", "retention.ms": retention}


@pytest.mark.parametrize(
    ("window", "retention"),
    [
        ("tumbling: {size: 1h}", "90000000"),
        ("tumbling: {size: 1h, grace: 5m}", "90300000"),
        ("sliding: {difference: 1h, grace: 5m}", "93900000"),
        ("session: {gap: 1h, grace: 5m}", "90300000"),
        ("unlimited: {}", "9223372036854775807"),
    ],
)
def test_windowed_changelogs(window: str, retention: str) -> None:
    application = compiled(windowed_count(window), {"in": 1})
    assert topic(application, "counts-changelog").config == windowed(retention)


def test_additional_retention_is_added_once() -> None:
    application = compiled(
        windowed_count("tumbling: {size: 1h}", config="windowstore.changelog.additional.retention.ms: 1"),
        {"in": 1},
    )
    assert topic(application, "counts-changelog").config == windowed("3600001")


def test_stores_of_a_stream_join_are_deleted_not_compacted() -> None:
    text = """
    topology:
      - stream: {topic: a, as: a}
      - stream: {topic: b, as: b}
      - leftJoin: {from: a, with: b, window: {difference: 1h, grace: 5m}, storeName: s}
    """
    application = compiled(text, {"a": 1, "b": 1})
    assert topic(application, "s-this-join-store-changelog").config == windowed("93900000", "delete")
    assert topic(application, "s-left-shared-join-store-changelog").config == COMPACTED


def test_versioned_stores_have_a_compaction_lag_of_a_day_more() -> None:
    store = "{supplier: {name: v, kind: versionedKeyValue, retention: 1h}}"
    text = f"topology: [{{table: {{topic: in, materialized: {store}}}}}]"
    application = compiled(text, {"in": 1})
    assert topic(application, "v-changelog").config == {**COMPACTED, "min.compaction.lag.ms": "90000000"}


def test_topic_configs_apply_to_every_topic_but_not_to_computed_values() -> None:
    config = "topic.retention.ms: 5, topic.segment.bytes: 1048576, topic.min.insync.replicas: 2"
    text = windowed_count("tumbling: {size: 1h}", config=config).replace(
        "groupByKey: {}", "groupBy: {name: by}"
    )
    application = compiled(text, {"in": 1})
    everywhere = {"min.insync.replicas": "2", "segment.bytes": "1048576"}
    assert topic(application, "by-repartition").config == {**REPARTITION, **everywhere, "retention.ms": "5"}
    assert topic(application, "counts-changelog").config == {**windowed("90000000"), **everywhere}


def test_overrides_of_a_store_have_precedence() -> None:
    overrides = "{store: counts, logging: {retention.ms: 7, cleanup.policy: delete, segment.ms: 9}}"
    text = windowed_count("tumbling: {size: 1h}", overrides, "topic.segment.ms: 8")
    application = compiled(text, {"in": 1})
    assert topic(application, "counts-changelog").config == {**windowed("7", "delete"), "segment.ms": "9"}


def test_replication_factor_is_the_brokers_unless_set() -> None:
    text = windowed_count("tumbling: {size: 1h}")
    assert topic(compiled(text, {"in": 1}), "counts-changelog").replication_factor == -1
    three = windowed_count("tumbling: {size: 1h}", config="replication.factor: 3")
    assert topic(compiled(three, {"in": 1}), "counts-changelog").replication_factor == 3


def test_disabled_logging_creates_no_topic() -> None:
    text = windowed_count("tumbling: {size: 1h}", "{store: counts, logging: false}")
    application = compiled(text, {"in": 1})
    assert application.internal_topics == ()
    assert application.is_stateful


def test_a_reused_source_topic_is_no_internal_topic() -> None:
    text = """
    application: {id: app, config: {topology.optimization: all}}
    topology: [{table: {topic: in, materialized: t}}]
    """
    application = compiled(text, {"in": 3})
    assert application.internal_topics == ()
    assert application.subtopologies[0].source_changelogs == ("in",)


def test_another_prefix() -> None:
    config = "__internal.override.topic.prefix__: other"
    application = compiled(windowed_count("tumbling: {size: 1h}", config=config), {"in": 1})
    assert [t.name for t in application.internal_topics] == ["other-counts-changelog"]
