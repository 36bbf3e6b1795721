"""Another version of Kafka Streams in a document: the preview says what it changes."""

import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

MERGE = {"topology.optimization": "merge.repartition.topics"}


def _declare(deployment: Deployment, version: str) -> None:
    """Write a topology whose two repartition topics are one since Kafka Streams 4.3."""
    plain = f"{deployment.source}-plain"
    deployment.write(
        [
            {"stream": {"topic": plain, "as": "plain"}},
            {"stream": {"topic": deployment.source}},
            {"selectKey": {"key": "value.id"}},
            {"filter": {"where": "value.ok", "as": "keyed"}},
            {"merge": {"from": "keyed", "with": "plain", "as": "merged"}},
            {"groupByKey": {"from": "merged"}},
            {"count": {"materialized": "counts"}},
            {"groupByKey": {"from": "merged"}},
            {"reduce": {"add": "value", "materialized": "latest"}},
        ],
        MERGE,
        application={"kafkaStreams": version},
    )


def test_a_preview_after_a_change_of_the_version_names_the_dropped_topic(deployment: Deployment) -> None:
    deployment.cluster.create(f"{deployment.source}-plain", 4)
    _declare(deployment, "4.2")
    deployment.up()
    dropped = f"{deployment.id}-latest-repartition"
    assert deployment.cluster.partitions(dropped) == 4

    _declare(deployment, "4.3")
    preview = deployment.stack.preview()

    text = " ".join(preview.text.split())
    assert "warning[KafkaStreamsChanged] Kafka Streams 4.3.1 instead of 4.2.2" in text, str(preview)
    assert f"{dropped} is no longer used." in text, str(preview)
    assert "a rolling restart is not safe" in text, str(preview)
    deployment.up()
    again = deployment.stack.preview()
    assert "KafkaStreamsChanged" not in again.text, str(again)
    assert deployment.cluster.partitions(dropped) == 4


@pytest.mark.soak  # without Pulumi: `planner/test_versions`
def test_a_version_that_loses_state_is_refused_until_it_is_accepted(deployment: Deployment) -> None:
    store = {"name": "seen", "kind": "keyValue", "shared": True}
    topology: list[dict[str, object]] = [
        {"stream": {"topic": deployment.source}},
        {"processValues": {"stores": [dict(store)]}},
        {"addStateStore": dict(store)},
    ]
    changelog = f"{deployment.id}-seen-changelog"
    deployment.write(topology, application={"kafkaStreams": "4.2"})
    deployment.up()
    assert deployment.cluster.partitions(changelog) == 4

    deployment.write(topology, application={"kafkaStreams": "4.3"})
    refused = deployment.refused("KafkaStreamsChanged")
    assert changelog in refused.text, str(refused)
    deployment.stack.configure({"setup": {deployment.id: {"reinitialize": True}}})
    up = deployment.up()
    assert "warning[KafkaStreamsChanged]" in up.text, str(up)
    assert deployment.cluster.partitions(changelog) == 4
