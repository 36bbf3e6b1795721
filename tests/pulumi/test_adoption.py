"""Topics that a running application made for itself."""

import pytest

from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]


def test_automatic_setup_takes_over_what_exists(world: World) -> None:
    world.cluster.create(world.repartition, 2)
    world.cluster.create(world.changelog, 4, {"cleanup.policy": "compact", "max.message.bytes": "2000000"})
    world.cluster.produce(world.changelog)
    ids = {name: world.cluster.topic_id(name) for name in world.topics}
    world.declare({"partition.autoscaling.enabled": True}, setup={"allowUnsafeExpansion": True})
    preview = world.stack.preview("--diff")
    assert "(import)" in preview.text, str(preview)
    world.up()
    world.settles_at(4, 4)
    assert {name: world.cluster.topic_id(name) for name in world.topics} == ids
    assert world.cluster.config(world.repartition)["retention.ms"] == "-1"
    assert world.cluster.config(world.changelog)["max.message.bytes"] == "2000000"
    world.is_clean()


def test_manual_setup_takes_over_only_when_told_to(world: World) -> None:
    manual = {"internal.topics.setup": "manual"}
    for name, policy in zip(world.topics, ("delete", "compact"), strict=True):
        world.cluster.create(name, 4, {"cleanup.policy": policy, "message.timestamp.type": "CreateTime"})
    world.cluster.set_config(world.repartition, retention_ms="-1", segment_bytes="52428800")
    world.declare(manual)
    world.refused("InternalTopicsAlreadySetup")
    world.stack.configure({"setup": {world.id: {"adopt": True}}})
    world.up()
    world.stack.configure({"setup": None})
    world.is_clean()


def test_an_incomplete_setup_is_completed_only_when_told_to(world: World) -> None:
    manual = {"internal.topics.setup": "manual"}
    world.cluster.create(world.changelog, 4, {"cleanup.policy": "compact"})
    world.declare(manual)
    world.refused("MissingInternalTopics")
    world.declare(manual, setup={"ifIncomplete": True})
    world.up()
    world.settles_at(4, 4)
    world.declare(manual)
    world.is_clean()
