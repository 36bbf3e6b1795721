"""Random accidents with the real engine and a broker, compared step by step with the simulation."""

import logging
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker import Broker
from tests.accidents.cluster import AccidentCluster
from tests.accidents.continuation import settle
from tests.accidents.real import RealMirror, create_stacks
from tests.accidents.simulated import discard_killed_runs
from tests.accidents.steps import Series
from tests.accidents.world import STACKS, World
from tests.pulumi.cluster import Cluster

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_log = logging.getLogger(__name__)


@pytest.fixture(autouse=True)
def _discarded() -> Iterator[None]:
    yield
    discard_killed_runs()


def test_a_few_accidents_end_as_in_the_simulation(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, broker: Broker
) -> None:
    take_steps(tmp_path, pulumi_toolchain, broker, steps=4, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(7_200)
@pytest.mark.parametrize("seed", range(2, 12))
def test_many_accidents_end_as_in_the_simulation(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, broker: Broker, seed: int
) -> None:
    take_steps(tmp_path, pulumi_toolchain, broker, steps=30, seed=seed)


def take_steps(folder: Path, toolchain: PulumiToolchain, broker: Broker, *, steps: int, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - a repeatable choice, not for security
    simulated, real = AccidentCluster(), Cluster(broker.bootstrap_servers)
    mirror = RealMirror(simulated, real, create_stacks(folder, toolchain, real), random.Random(seed))  # noqa: S311
    world = World(simulated, mirror)
    Series(world, chance).take(steps)
    for stack in STACKS:
        settle(world, stack)
    _log.info("%d runs, %d compared, %d killed", world.runs, mirror.compared, mirror.kills)
