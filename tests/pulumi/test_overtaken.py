"""Somebody else expands a topic after `up` has looked and before it registers."""

import pytest

from tests.pulumi.conftest import World

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
    def read(self, request):
        snapshot = super().read(request)
        if not pulumi.runtime.is_dry_run() and snapshot.topics[TOPIC].partitions < 6:
            Cluster("{servers}").expand(TOPIC, 6)
        return snapshot


async def main():
    await deploy(configured_settings(), reader_for=Overtaken)


pulumi.run(main)
"""


@pytest.mark.parametrize("config", [GROWING, {**GROWING, "topic.segment.bytes": 2_000_000}])
def test_up_goes_on_and_the_next_preview_is_clean(world: World, config: dict[str, object]) -> None:
    unsafe = {"allowUnsafeExpansion": True}
    world.set_up(GROWING, setup=unsafe)
    program = world.stack.folder / "__main__.py"
    usual = program.read_text()
    world.cluster.expand(world.source, 6)
    world.declare(config, setup=unsafe)
    program.write_text(PROGRAM.format(topic=world.changelog, servers=world.cluster.bootstrap_servers))
    up = world.up()
    assert f"expand    {world.changelog}" in up.text, str(up)
    program.write_text(usual)
    world.settles_at(6, 6)
    assert world.cluster.config(world.changelog).get("segment.bytes") == (
        "2000000" if config != GROWING else None
    )
    world.is_clean()
    world.is_clean("--refresh")
