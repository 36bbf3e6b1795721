"""Somebody else expands a topic after `up` has looked and before it registers."""

import json

import pytest

from tests.pulumi.conftest import World
from tests.pulumi.driver import Outcome

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GROWING = {"partition.autoscaling.enabled": True}
PROGRAM = """
import pulumi
from infra.apply import deploy
from infra.apply.program import configured_settings
from infra.observe import KafkaClusterReader
from tests.pulumi.cluster import Cluster

TOPIC = "{topic}"


class Overtaken(KafkaClusterReader):
    def {method}(self, asked):
        answer = super().{method}(asked)
        if not pulumi.runtime.is_dry_run() and super().partition_counts([TOPIC])[TOPIC] < 6:
            Cluster("{servers}").expand(TOPIC, 6)
        return answer


async def main():
    await deploy(configured_settings(), reader_for=Overtaken)


pulumi.run(main)
"""


@pytest.mark.parametrize("config", [GROWING, {**GROWING, "topic.segment.bytes": 2_000_000}])
def test_up_goes_on_and_the_next_preview_is_clean(world: World, config: dict[str, object]) -> None:
    unsafe = {"allowUnsafeExpansion": True}
    world.set_up(GROWING, setup=unsafe)
    world.cluster.expand(world.source, 6)
    world.declare(config, setup=unsafe)
    up = overtaken_up(world, after="read")
    assert up.succeeded, str(up)
    assert f"expand    {world.changelog}" in up.text, str(up)
    world.settles_at(6, 6)
    assert world.cluster.config(world.changelog).get("segment.bytes") == (
        "2000000" if config != GROWING else None
    )
    world.is_clean()
    world.is_clean("--refresh")


def test_what_an_up_leaves_that_is_overtaken_at_the_last_moment_is_cleared_by_a_refresh(world: World) -> None:
    """Pulumi notes that an update has failed, and shows another one until then."""
    world.set_up(GROWING, setup={"allowUnsafeExpansion": True})
    world.cluster.expand(world.source, 6)
    up = overtaken_up(world, after="partition_counts")
    assert "Number of partitions is invalid" in up.text, str(up)
    assert shown(world).get(world.changelog) == "update"
    world.stack.succeed("refresh", "--yes")
    assert world.changelog not in shown(world)
    world.up()
    world.settles_at(6, 6)
    world.is_clean()


def shown(world: World) -> dict[str, str]:
    """Return what a preview would do to resources, by their names."""
    steps = json.loads(world.stack.preview("--json").text)["steps"]
    return {step["urn"].rpartition("::")[2]: step["op"] for step in steps if step["op"] != "same"}


def overtaken_up(world: World, *, after: str) -> Outcome:
    """Run an `up` whose changelog topic is expanded right after this question to the cluster."""
    program = world.stack.folder / "__main__.py"
    usual = program.read_text()
    servers = world.cluster.bootstrap_servers
    program.write_text(PROGRAM.format(topic=world.changelog, servers=servers, method=after))
    up = world.stack.up()
    program.write_text(usual)
    return up
