"""Topics that another client deleted, re-created or changed."""

import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

MANUAL = {"internal.topics.setup": "manual"}


def test_a_deleted_topic_is_an_error_when_setup_is_manual(deployment: Deployment) -> None:
    deployment.set_up(MANUAL)
    deployment.cluster.delete(deployment.changelog)
    deployment.refused("MissingInternalTopics")
    deployment.stack.succeed("refresh", "--yes")
    deployment.refused("MissingInternalTopics")
    # Another client creates it again, empty: the same loss.
    deployment.cluster.create(deployment.changelog, 4, {"cleanup.policy": "compact"})
    deployment.refused("MissingInternalTopics")
    deployment.stack.configure({"setup": {deployment.id: {"reinitialize": True}}})
    deployment.up()
    deployment.stack.configure({"setup": None})
    deployment.is_clean()


@pytest.mark.soak  # with a setting of the stack: the test before
def test_an_explicit_reinitialization_creates_lost_topics(deployment: Deployment) -> None:
    deployment.set_up(MANUAL)
    deployment.cluster.delete(*deployment.topics)
    deployment.declare(MANUAL, setup={"reinitialize": True})
    deployment.up()
    deployment.settles_at(4, 4)
    deployment.declare(MANUAL)
    deployment.is_clean()


def test_a_deleted_topic_is_created_again_with_a_warning_when_setup_is_automatic(
    deployment: Deployment,
) -> None:
    deployment.set_up()
    deployment.cluster.delete(deployment.changelog)
    # Pulumi's state still holds the topic: on its own Pulumi would see nothing to do.
    preview = deployment.stack.preview("--diff")
    assert f'{deployment.changelog}: "re-create with 4 partitions"' in preview.text, str(preview)
    up = deployment.up()
    assert "warning[MissingInternalTopics]" in up.text, str(up)
    deployment.settles_at(4, 4)
    assert deployment.cluster.config(deployment.changelog)["cleanup.policy"] == "compact"
    deployment.cluster.delete(deployment.changelog)
    deployment.stack.succeed("refresh", "--yes")
    up = deployment.up()
    assert "warning[MissingInternalTopics]" in up.text, str(up)
    deployment.settles_at(4, 4)
    deployment.is_clean()


def test_a_topic_that_another_client_recreated_is_reported_and_reconfigured(deployment: Deployment) -> None:
    deployment.set_up({"partition.autoscaling.enabled": True}, setup={"allowUnsafeExpansion": True})
    deployment.cluster.delete(deployment.changelog)
    deployment.cluster.create(deployment.changelog, 2)
    up = deployment.up()
    assert "re-created since it was set up" in up.text, str(up)
    deployment.settles_at(4, 4)
    assert deployment.cluster.config(deployment.changelog)["cleanup.policy"] == "compact"
    deployment.is_clean()


def test_a_setting_changed_by_hand_is_reconfigured_every_time(deployment: Deployment) -> None:
    deployment.set_up()
    right = deployment.cluster.config(deployment.changelog)
    for _ in range(2):
        deployment.cluster.set_config(
            deployment.changelog, cleanup_policy="delete", max_message_bytes="2000000"
        )
        up = deployment.up("--diff")
        assert f'{deployment.changelog}: "cleanup.policy delete -> compact"' in up.text, str(up)
        assert deployment.cluster.config(deployment.changelog) == {**right, "max.message.bytes": "2000000"}


def test_a_setting_that_loses_data_is_an_error_when_setup_is_manual(deployment: Deployment) -> None:
    deployment.set_up(MANUAL)
    deployment.cluster.set_config(deployment.changelog, cleanup_policy="delete")
    deployment.refused("MisconfiguredInternalTopic")


def test_settings_change_on_topics_that_another_client_expanded(deployment: Deployment) -> None:
    """Pulumi's state still has the old count, and the provider would wait for that count."""
    deployment.set_up()
    for name in (deployment.source, *deployment.topics):
        deployment.cluster.expand(name, 6)
    deployment.is_clean()
    deployment.declare({"topic.segment.bytes": 2_000_000})
    deployment.up()
    assert deployment.cluster.config(deployment.changelog)["segment.bytes"] == "2000000"
    deployment.settles_at(6, 6)
    deployment.is_clean()
