"""Random accidents with the real engine and a broker, compared step by step with the simulation."""

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import attrs
import pytest

from headwater.model.records import OWNERSHIP_TOPIC
from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.accidents.cluster import AccidentCluster
from tests.accidents.continuation import settle
from tests.accidents.documents import Declared
from tests.accidents.engine import Clock
from tests.accidents.members import Members
from tests.accidents.real import RealMirror, create_stacks
from tests.accidents.simulated import discard_killed_runs
from tests.accidents.steps import Series
from tests.accidents.world import OTHER_SOURCE, SOURCE, STACKS, World
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_log = logging.getLogger(__name__)
_CHANGELOG = "pay-a-changelog"


@pytest.fixture(autouse=True)
def _discarded() -> Iterator[None]:
    yield
    discard_killed_runs()


def test_a_retired_application_is_deleted_only_without_readers_and_with_its_record(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, broker: Broker
) -> None:
    """Each run is compared with the simulation; SIGKILL interrupts the deletion."""
    with mirrored_world(tmp_path, pulumi_toolchain, broker, seed=1) as world:
        pay = Declared(id="pay", source=SOURCE)
        apply(world, pay)
        world.write(_CHANGELOG)
        world.save("one")
        apply(world, attrs.evolve(pay, lifecycle="retired"))
        world.join("audit", _CHANGELOG)
        world.remove("one", pay.id)
        refuse(world)
        world.leave("audit")
        world.write_unreadable_record(("hostile", "another"))
        refuse(world)
        world.delete(OWNERSHIP_TOPIC)
        refuse(world)
        world.restore("one", 0)
        apply(world, pay)
        apply(world, attrs.evolve(pay, lifecycle="retired"))
        world.remove("one", pay.id)
        assert world.up("one", Clock(ends_at=3)).is_finished
        assert world.cluster.topics.keys() == {SOURCE, OTHER_SOURCE, OWNERSHIP_TOPIC}


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", range(2, 32))
def test_many_accidents_end_as_in_the_simulation(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, broker: Broker, seed: int
) -> None:
    with mirrored_world(tmp_path, pulumi_toolchain, broker, seed=seed) as world:
        Series(world, random.Random(seed)).take(30)  # noqa: S311 - a repeatable choice, not for security
        for stack in STACKS:
            settle(world, stack)


@contextmanager
def mirrored_world(folder: Path, toolchain: PulumiToolchain, broker: Broker, *, seed: int) -> Iterator[World]:
    """Return a world in which the real engine and a broker take each step, too."""
    simulated, real = AccidentCluster(), Cluster(broker.bootstrap_servers)
    with Members.polled(broker.bootstrap_servers) as members:
        mirror = RealMirror(
            simulated=simulated,
            real=real,
            stacks=create_stacks(folder, toolchain, real),
            members=members,
            chance=random.Random(seed),  # noqa: S311 - a repeatable choice, not for security
        )
        world = World(simulated, mirror)
        mirror.states = {name: partial(getattr, stack, "state") for name, stack in world.stacks.items()}
        yield world
        _log.info("%d runs, %d compared, %d killed", world.runs, mirror.compared, mirror.kills)


def apply(world: World, document: Declared) -> None:
    world.declare("one", document)
    assert world.up("one").is_finished, world.log


def refuse(world: World) -> None:
    """Run `up`, which must not delete anything."""
    before = set(world.cluster.topics)
    assert world.up("one").codes == ("DeletionRefused",)
    assert world.cluster.topics.keys() == before
