"""The Pulumi package in programs that do not import Headwater: the plugin constructs the component."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs
import pytest

from headwater.toolchain import PulumiToolchain
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import SOURCE_PARTITIONS, Deployment
from tests.pulumi.driver import Stack

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_PLUGIN = f"#!{sys.executable}\nfrom headwater.pulumi.package import run_plugin\nrun_plugin()\n"
_PROGRAM = """
import pulumi

class Applications(pulumi.ComponentResource):
    partitions: pulumi.Output[dict]

    def __init__(self, name, inputs):
        super().__init__("headwater:index:Applications", name, {"partitions": None, **inputs}, None, True)

made = Applications("topics", INPUTS)
pulumi.export("partitions", made.partitions)
"""


@pytest.fixture
def deployment(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, cluster: Cluster, unique: Callable[[str], str]
) -> Deployment:
    inputs = {"bootstrapServers": [cluster.bootstrap_servers], "documents": ["documents"]}
    stack = Stack.create(
        tmp_path / "stack", pulumi_toolchain, {}, program=_PROGRAM.replace("INPUTS", repr(inputs))
    )
    stack.configure({"documents": None})
    (stack.folder / "plugin").mkdir()
    plugin = stack.folder / "plugin" / "pulumi-resource-headwater"
    plugin.write_text(_PLUGIN)
    plugin.chmod(0o755)
    (stack.folder / "Pulumi.yaml").write_text(
        "name: headwater\nruntime: python\nplugins: {providers: [{name: headwater, path: plugin}]}\n"
    )
    source = unique("orders")
    cluster.create(source, SOURCE_PARTITIONS)
    return Deployment(stack, cluster, unique("app"), source)


def test_applications(deployment: Deployment) -> None:
    deployment.declare()
    print(deployment.stack.preview())
    print(deployment.up())
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)
    exported = json.loads(deployment.stack.succeed("stack", "output", "--json"))
    assert exported == {"partitions": {deployment.id: dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}}
    deployment.is_clean()
    print(json.dumps([ (r["urn"], r.get("parent")) for r in deployment.stack.state()], indent=1))
    deployment.declare({"replication.factor": 5, "internal.topics.setup": "manual"})
    deployment.cluster.delete(deployment.changelog)
    print(deployment.refused("MissingInternalTopics"))
