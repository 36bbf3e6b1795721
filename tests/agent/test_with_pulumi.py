"""The agent and `pulumi up` expand the same topics: whoever is first, the next preview has nothing to do."""

from collections.abc import Callable
from pathlib import Path

import attrs
import pytest

from spark_jobs.agent.documents import DocumentFiles
from spark_jobs.agent.events import AttemptEnded, Notified
from spark_jobs.agent.run import AgentSettings
from spark_jobs.agent.state import Phase
from tests.agent.running import await_true, running, settings
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import World, make_world
from toolchain import PulumiToolchain
from toolchain.broker.local import LocalBroker

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GROWING = {"partition.autoscaling.enabled": True}


@pytest.fixture
def world(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, kafka: LocalBroker, unique: Callable[[str], str]
) -> World:
    made = make_world(tmp_path / "stack", pulumi_toolchain, Cluster(kafka.bootstrap_servers), unique)
    made.set_up(GROWING, setup={"allowUnsafeExpansion": True})
    return made


def agent_of(world: World) -> AgentSettings:
    files = DocumentFiles([world.stack.folder / "documents"])
    return attrs.evolve(settings(world.cluster.bootstrap_servers, (), world.id), documents=files)


def test_the_agent_first(world: World) -> None:
    with running(agent_of(world)) as agent:
        world.cluster.expand(world.source, 6)
        world.settles_at(6, 6)
        world.is_clean()
        world.is_clean("--refresh")
        await_true(lambda: agent.phase(world.id) is Phase.STEADY)
    world.cluster.expand(world.source, 8)
    world.up()
    world.settles_at(8, 8)
    world.is_clean()


def test_pulumi_first(world: World) -> None:
    with running(agent_of(world)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(world.id) is Phase.STEADY)
    world.cluster.expand(world.source, 6)
    world.up()
    with running(agent_of(world)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(world.id) is Phase.STEADY)
        assert not agent.of(AttemptEnded)
        world.settles_at(6, 6)
        world.is_clean()


def test_both_at_the_same_moment(world: World) -> None:
    """`up` may find a topic grown since it looked; what it then tells is no difference to the next run."""
    with running(agent_of(world)) as agent:
        await_true(lambda: agent.state.is_recovered and agent.phase(world.id) is Phase.STEADY)
        up = world.stack.start("up", "--yes", "--skip-preview")
        world.cluster.expand(world.source, 6)
        up.communicate(timeout=120)
        world.settles_at(6, 6)
        await_true(lambda: agent.of(Notified))
        clean_after(world, up.returncode)


def test_up_has_planned_what_the_agent_then_does(world: World) -> None:
    """The agent looks again just after `up` has begun to apply."""
    world.cluster.expand(world.source, 6)
    up = world.stack.start("up", "--yes", "--skip-preview")
    with running(agent_of(world)) as agent:
        up.communicate(timeout=120)
        await_true(lambda: agent.state.is_recovered and agent.phase(world.id) is Phase.STEADY)
        world.settles_at(6, 6)
        clean_after(world, up.returncode)


def clean_after(world: World, returncode: int) -> None:
    """An `up` that was overtaken fails, and Pulumi notes that: the next one clears it and changes nothing."""
    if returncode != 0:
        world.up()
        world.settles_at(6, 6)
    world.is_clean()
