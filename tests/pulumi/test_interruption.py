"""Runs that were killed, cut off or crossed by another."""

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import World, make_world
from tests.pulumi.driver import end, kill
from toolchain import PulumiToolchain
from toolchain.broker import Broker
from toolchain.broker.readiness import until

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

STORES = 12
SLOWLY = ("up", "--yes", "--skip-preview", "--parallel", "2")
SECONDS = 60


def many(world: World, setup: str = "manual", config: Mapping[str, object] | None = None) -> list[str]:
    """Declare an application with many changelogs and return their names."""
    topology: list[dict[str, object]] = [{"stream": {"topic": world.source, "as": "orders"}}]
    for number in range(STORES):
        store = {"name": f"store-{number}", "kind": "keyValue"}
        topology.append({"process": {"from": "orders", "name": f"worker-{number}", "stores": [store]}})
    world.write(topology, {"internal.topics.setup": setup, **(config or {})})
    return [f"{world.id}-store-{number}-changelog" for number in range(STORES)]


@pytest.mark.parametrize("setup", ["manual", "automatic"])
def test_a_killed_up_is_finished_by_the_next(world: World, setup: str) -> None:
    names = many(world, setup)
    process = world.stack.start(*SLOWLY)
    assert until(lambda: len(world.cluster.existing(names)) >= 3, SECONDS)
    kill(process)
    made = {name: world.cluster.topic_id(name) for name in world.cluster.existing(names)}
    assert 3 <= len(made) < STORES
    locked = world.stack.up()
    assert "currently locked" in locked.text, str(locked)
    world.stack.succeed("cancel", "--yes")
    world.up()
    assert world.cluster.existing(names) == set(names)
    assert {name: world.cluster.topic_id(name) for name in made} == made
    world.is_clean()


def test_a_killed_up_without_checkpoints_is_finished_by_adoption(world: World) -> None:
    names = many(world)
    hurried = world.with_environment(PULUMI_SKIP_CHECKPOINTS="1", PULUMI_EXPERIMENTAL="1")
    process = hurried.stack.start(*SLOWLY)
    assert until(lambda: len(world.cluster.existing(names)) >= 3, SECONDS)
    kill(process)
    world.stack.succeed("cancel", "--yes")
    assert not world.stack.topics()
    world.refused("MissingInternalTopics")
    world.stack.configure({"setup": {world.id: {"adopt": True, "ifIncomplete": True}}})
    world.up()
    world.stack.configure({"setup": None})
    assert world.cluster.existing(names) == set(names)
    world.is_clean()


def test_topics_added_to_an_application_survive_a_killed_up(world: World) -> None:
    world.set_up({"internal.topics.setup": "manual"})
    names = many(world)
    process = world.stack.start(*SLOWLY)
    assert until(lambda: len(world.cluster.existing(names)) >= 3, SECONDS)
    kill(process)
    world.stack.succeed("cancel", "--yes")
    world.up()
    assert world.cluster.existing(names) == set(names)
    world.is_clean()


def test_a_killed_expansion_is_finished_by_the_next(world: World) -> None:
    static = {"partition.autoscaling.enabled": True, "static.partitioner.class": "com.example.ByTenant"}
    names = many(world, config=static)
    world.up()
    world.cluster.expand(world.source, 6)
    process = world.stack.start(*SLOWLY)
    assert until(lambda: sum(world.cluster.partitions(name) == 6 for name in names) >= 3, SECONDS)
    kill(process)
    assert {world.cluster.partitions(name) for name in names} == {4, 6}
    world.stack.succeed("cancel", "--yes")
    world.up()
    assert {world.cluster.partitions(name) for name in names} == {6}
    world.is_clean()


def test_a_broker_that_dies_during_up_is_told_and_the_next_up_finishes(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, broker: Broker, unique: Callable[[str], str]
) -> None:
    world = make_world(tmp_path / "stack", pulumi_toolchain, Cluster(broker.bootstrap_servers), unique)
    names = many(world)
    # The provider asks a lost broker for up to two minutes; a person would press Ctrl-C, twice.
    process = world.stack.start(*SLOWLY)
    assert until(lambda: len(world.cluster.existing(names)) >= 3, SECONDS)
    broker.kill()
    outcome = end(process, patience=20)
    assert not outcome.succeeded, str(outcome)
    unreachable = world.stack.up()
    assert "error[ClusterUnreachable]" in unreachable.text, str(unreachable)
    broker.start()
    world.stack.run("cancel", "--yes")
    world.up()
    assert world.cluster.existing(names) == set(names)
    world.is_clean()


def test_a_second_up_at_the_same_time_is_turned_away(world: World) -> None:
    many(world)
    first = world.stack.start("up", "--yes", "--skip-preview")
    locks = world.stack.folder / "state" / ".pulumi" / "locks"
    assert until(lambda: any(locks.rglob("*.json")), SECONDS)
    os.killpg(first.pid, signal.SIGSTOP)
    try:
        second = world.stack.up()
    finally:
        os.killpg(first.pid, signal.SIGCONT)
    assert not second.succeeded, str(second)
    assert "currently locked" in second.text, str(second)
    outcome = end(first, patience=SECONDS)
    assert outcome.succeeded, str(outcome)
    world.is_clean()
