"""Headwater inside somebody else's Pulumi program: the one of the documentation."""

import json
import re
from pathlib import Path

import pytest

from tests.pulumi.conftest import World

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GUIDE = Path(__file__).parents[2] / "docs" / "pulumi.md"


def test_the_program_of_the_guide_deploys_and_exports(world: World) -> None:
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for placeholder, value in {
        "kafka:9092": world.cluster.bootstrap_servers,
        '"topologies"': '"documents"',
        "orders-app": world.id,
    }.items():
        assert placeholder in program
        program = program.replace(placeholder, value)
    (world.stack.folder / "__main__.py").write_text(program)
    world.declare()
    world.up()
    world.settles_at(4, 4)
    exported = json.loads(world.stack.succeed("stack", "output", "--json"))
    assert exported == {"partitions": {world.repartition: 4, world.changelog: 4}}
    world.is_clean()
