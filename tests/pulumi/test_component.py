"""The component in a user's Pulumi program: the example of docs/pulumi.md, word for word."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.broker.local import LocalBroker
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import SOURCE_PARTITIONS, Deployment
from tests.pulumi.driver import Stack

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GUIDE = Path(__file__).parents[2] / "docs" / "pulumi.md"


def test_the_program_of_the_guide_runs(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    kafka: LocalBroker,
    cluster: Cluster,
    unique: Callable[[str], str],
) -> None:
    id_, source = unique("app"), unique("orders")
    [program] = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for written, ours in {
        '"kafka:9092"': f'"{kafka.bootstrap_servers}"',
        '"topologies"': '"documents"',
        '"orders-app"': f'"{id_}"',
    }.items():
        assert written in program
        program = program.replace(written, ours)
    stack = Stack.create(tmp_path / "stack", pulumi_toolchain, {}, program=program, is_preloaded=True)
    stack.configure({"documents": None})
    cluster.create(source, SOURCE_PARTITIONS)
    deployment = Deployment(stack, cluster, id_, source)
    deployment.declare()
    deployment.up()
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)
    exported = json.loads(stack.succeed("stack", "output", "--json"))
    assert exported == {"partitions": dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}
    deployment.is_clean()
    deployment.declare({"replication.factor": 5, "internal.topics.setup": "manual"})
    cluster.delete(deployment.changelog)
    deployment.refused("MissingInternalTopics")
