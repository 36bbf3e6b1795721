"""Topics that were deleted, created anew or changed by somebody else."""

import pytest

from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

MANUAL = {"internal.topics.setup": "manual"}


def test_a_deleted_topic_is_an_error_when_setup_is_manual(world: World) -> None:
    world.set_up(MANUAL)
    world.cluster.delete(world.changelog)
    world.refused("MissingInternalTopics")
    world.stack.succeed("refresh", "--yes")
    world.refused("MissingInternalTopics")
    # Somebody creates it again, empty: that is the same loss.
    world.cluster.create(world.changelog, 4, {"cleanup.policy": "compact"})
    world.refused("MissingInternalTopics")
    world.stack.configure({"setup": {world.id: {"reinitialize": True}}})
    world.up()
    world.stack.configure({"setup": None})
    world.is_clean()


def test_an_explicit_reinitialization_creates_lost_topics(world: World) -> None:
    world.set_up(MANUAL)
    world.cluster.delete(*world.topics)
    world.declare(MANUAL, setup={"reinitialize": True})
    world.up()
    world.settles_at(4, 4)
    world.declare(MANUAL)
    world.is_clean()


def test_a_deleted_topic_is_created_again_with_a_warning_when_setup_is_automatic(world: World) -> None:
    world.set_up()
    world.cluster.delete(world.changelog)
    # Pulumi's state still holds the topic: on its own Pulumi would see nothing to do.
    preview = world.stack.preview("--diff")
    assert f'{world.changelog}: "re-create with 4 partitions"' in preview.text, str(preview)
    up = world.up()
    assert "warning[MissingInternalTopics]" in up.text, str(up)
    world.settles_at(4, 4)
    assert world.cluster.config(world.changelog)["cleanup.policy"] == "compact"
    world.is_clean()
    world.cluster.delete(world.changelog)
    world.stack.succeed("refresh", "--yes")
    up = world.up()
    assert "warning[MissingInternalTopics]" in up.text, str(up)
    world.settles_at(4, 4)
    world.is_clean()


def test_a_topic_that_another_client_recreated_is_reported_and_reconfigured(world: World) -> None:
    world.set_up({"partition.autoscaling.enabled": True}, setup={"allowUnsafeExpansion": True})
    world.cluster.delete(world.changelog)
    world.cluster.create(world.changelog, 2)
    up = world.up()
    assert "re-created since it was set up" in up.text, str(up)
    world.settles_at(4, 4)
    assert world.cluster.config(world.changelog)["cleanup.policy"] == "compact"
    world.is_clean()


def test_a_setting_changed_by_hand_is_reconfigured_every_time(world: World) -> None:
    world.set_up()
    right = world.cluster.config(world.changelog)
    for _ in range(2):
        world.cluster.set_config(world.changelog, cleanup_policy="delete", max_message_bytes="2000000")
        up = world.up("--diff")
        assert f'{world.changelog}: "cleanup.policy delete -> compact"' in up.text, str(up)
        assert world.cluster.config(world.changelog) == {**right, "max.message.bytes": "2000000"}
    world.is_clean()


def test_a_setting_that_loses_data_is_an_error_when_setup_is_manual(world: World) -> None:
    world.set_up(MANUAL)
    world.cluster.set_config(world.changelog, cleanup_policy="delete")
    world.refused("MisconfiguredInternalTopic")


def test_settings_change_on_topics_that_somebody_has_expanded(world: World) -> None:
    """Pulumi's state still has the old count, and the provider would wait for it to come back."""
    world.set_up()
    for name in (world.source, *world.topics):
        world.cluster.expand(name, 6)
    world.is_clean()
    world.declare({"topic.segment.bytes": 2_000_000})
    world.up()
    assert world.cluster.config(world.changelog)["segment.bytes"] == "2000000"
    world.settles_at(6, 6)
    world.is_clean()
