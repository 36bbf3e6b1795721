"""From the first `up` on, while sources grow."""

import pytest

from tests.pulumi.conftest import World
from tests.pulumi.driver import end
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

MANUAL = {"internal.topics.setup": "manual"}
GROWING = {"partition.autoscaling.enabled": True}
UNSAFE = {"allowUnsafeExpansion": True}


def test_the_first_up_creates_and_later_ones_have_nothing_to_do(world: World) -> None:
    world.declare(MANUAL)
    preview = world.stack.preview()
    assert preview.succeeded, str(preview)
    assert "first setup (manual)" in preview.text
    world.settles_at(None, None)
    world.up()
    world.settles_at(4, 4)
    assert world.cluster.config(world.changelog)["cleanup.policy"] == "compact"
    world.is_clean()
    world.stack.succeed("refresh", "--yes")
    world.is_clean()


def test_a_grown_source_is_an_error_until_autoscaling_is_enabled(world: World) -> None:
    world.set_up()
    # Set by an operator: an update by the provider resets what it is not told of.
    world.cluster.set_config(world.changelog, max_message_bytes="2000000")
    world.cluster.expand(world.source, 6)
    world.refused("SourceTopicsExpanded")
    world.declare(GROWING, setup=UNSAFE)
    up = world.up()
    world.settles_at(6, 6)
    downstream, upstream = (up.text.index(f"{name} updated") for name in reversed(world.topics))
    assert downstream < upstream, str(up)
    assert world.cluster.config(world.changelog)["max.message.bytes"] == "2000000"
    world.is_clean()


def test_a_topic_expanded_beyond_its_source_is_never_replaced(world: World) -> None:
    world.set_up()
    world.cluster.expand(world.changelog, 9)
    world.refused("OverPartitionedInternalTopic")
    # With a refresh Pulumi alone would delete the topic and create it with fewer partitions.
    world.refused("OverPartitionedInternalTopic", flags=("--refresh",))


def test_what_the_agent_expanded_is_no_change(world: World) -> None:
    world.set_up(GROWING, setup=UNSAFE)
    for name in (world.source, *world.topics):
        world.cluster.expand(name, 6)
    world.is_clean()
    world.is_clean("--refresh")
    world.cluster.expand(world.source, 8)
    world.up()
    world.settles_at(8, 8)
    world.is_clean()


def test_an_expansion_that_crosses_an_up_leaves_nothing_to_do(world: World) -> None:
    world.set_up(GROWING, setup=UNSAFE)
    world.cluster.expand(world.source, 6)
    process = world.stack.start("up", "--yes", "--skip-preview")
    # The provider looks at each topic for a second after it grew; only then comes the next wave.
    assert until(lambda: world.cluster.partitions(world.changelog) == 6, 60)
    world.cluster.expand(world.repartition, 6)
    if not end(process, patience=60).succeeded:  # it had looked at the topic just before that
        world.up()
    world.settles_at(6, 6)
    world.is_clean()


def test_a_setting_of_the_document_is_changed_in_the_topic(world: World) -> None:
    world.set_up()
    world.declare({"topic.segment.bytes": 1048576})
    preview = world.stack.preview("--diff")
    assert 'segment.bytes: "1048576"' in preview.text, str(preview)
    world.up()
    assert {world.cluster.config(name)["segment.bytes"] for name in world.topics} == {"1048576"}
    world.is_clean()


def test_a_topic_that_the_topology_no_longer_has_stays(world: World) -> None:
    world.set_up()
    world.write([{"stream": {"topic": world.source}}, {"to": {"topic": world.source + "-out"}}])
    world.cluster.create(world.source + "-out", 4)
    preview = world.stack.preview()
    assert preview.text.count("the topology no longer has it; it stays until you delete it") == 2, str(
        preview
    )
    world.up()
    world.settles_at(4, 4)
    world.is_clean()
    world.cluster.delete(*world.topics)
    world.up()
    world.up()
    assert not world.stack.topics()
    world.is_clean()
