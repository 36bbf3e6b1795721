"""Adopt topics that a running application created itself."""

import pytest

from tests.pulumi.conftest import Deployment

CREATED = {"message.timestamp.type": "CreateTime"}
"""What Kafka Streams sets on each internal topic, and users rarely do."""

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_automatic_setup_adopts_existing_topics(deployment: Deployment) -> None:
    deployment.cluster.create(deployment.repartition, 2, {"cleanup.policy": "delete", **CREATED})
    deployment.cluster.create(
        deployment.changelog, 4, {"cleanup.policy": "compact", "max.message.bytes": "2000000", **CREATED}
    )
    deployment.cluster.produce(deployment.changelog)
    ids = {name: deployment.cluster.topic_id(name) for name in deployment.topics}
    deployment.declare({"partition.autoscaling.enabled": True}, setup={"allowUnsafeExpansion": True})
    preview = deployment.stack.preview("--diff")
    assert "(import)" in preview.text, str(preview)
    deployment.up()
    deployment.settles_at(4, 4)
    assert {name: deployment.cluster.topic_id(name) for name in deployment.topics} == ids
    assert deployment.cluster.config(deployment.repartition)["retention.ms"] == "-1"
    assert deployment.cluster.config(deployment.changelog)["max.message.bytes"] == "2000000"
    deployment.is_clean()


def test_manual_setup_adopts_topics_only_when_configured(deployment: Deployment) -> None:
    manual = {"internal.topics.setup": "manual"}
    for name, policy in zip(deployment.topics, ("delete", "compact"), strict=True):
        deployment.cluster.create(name, 4, {"cleanup.policy": policy, "message.timestamp.type": "CreateTime"})
    deployment.cluster.set_config(deployment.repartition, retention_ms="-1", segment_bytes="52428800")
    deployment.declare(manual)
    deployment.refused("InternalTopicsAlreadySetup")
    deployment.stack.configure({"setup": {deployment.id: {"adopt": True}}})
    deployment.up()


def test_an_incomplete_setup_is_completed_only_when_configured(deployment: Deployment) -> None:
    manual = {"internal.topics.setup": "manual"}
    deployment.cluster.create(deployment.changelog, 4, {"cleanup.policy": "compact", **CREATED})
    deployment.declare(manual)
    deployment.refused("MissingInternalTopics")
    deployment.declare(manual, setup={"ifIncomplete": True})
    deployment.up()
    deployment.settles_at(4, 4)
    deployment.declare(manual)
    deployment.is_clean()
