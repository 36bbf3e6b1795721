"""Headwater in a user's Pulumi program: the example of the documentation."""

import json
import re
from pathlib import Path

import pytest

from tests.pulumi.conftest import Deployment

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GUIDE = Path(__file__).parents[2] / "docs" / "pulumi.md"


def test_the_program_of_the_guide_deploys_and_exports(deployment: Deployment) -> None:
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for placeholder, value in {
        "kafka:9092": deployment.cluster.bootstrap_servers,
        '"topologies"': '"documents"',
        "orders-app": deployment.id,
    }.items():
        assert placeholder in program
        program = program.replace(placeholder, value)
    (deployment.stack.folder / "__main__.py").write_text(program)
    deployment.declare()
    deployment.up()
    deployment.settles_at(4, 4)
    exported = json.loads(deployment.stack.succeed("stack", "output", "--json"))
    assert exported == {"partitions": {deployment.repartition: 4, deployment.changelog: 4}}
    deployment.is_clean()
