"""The component in users' Pulumi programs: the examples of the guides, word for word."""

import re
import subprocess
import sys
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
    stack = Stack.create(
        tmp_path / "stack", pulumi_toolchain, {}, program=program, is_preloaded=True, has_passphrase=False
    )
    stack.configure({"documents": None})
    cluster.create(source, SOURCE_PARTITIONS)
    deployment = Deployment(stack, cluster, id_, source)
    deployment.declare()
    deployment.up()
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)
    assert stack.outputs() == {"partitions": dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}
    deployment.is_clean()
    deployment.declare({"replication.factor": 5, "internal.topics.setup": "manual"})
    cluster.delete(deployment.changelog)
    deployment.refused("MissingInternalTopics")


def test_the_program_of_the_automation_api_runs(
    tmp_path: Path,
    pulumi_toolchain: PulumiToolchain,
    kafka: LocalBroker,
    cluster: Cluster,
    unique: Callable[[str], str],
) -> None:
    guide = GUIDE.with_name("pulumi-package.md").read_text(encoding="utf-8")
    [program] = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    for written, ours in {
        '"kafka:9092"': f'"{kafka.bootstrap_servers}"',
        '"topologies"': '"documents"',
    }.items():
        assert written in program
        program = program.replace(written, ours)
    stack = Stack.create(tmp_path / "stack", pulumi_toolchain, {}, program=program)
    id_, source = unique("app"), unique("orders")
    cluster.create(source, SOURCE_PARTITIONS)
    deployment = Deployment(stack, cluster, id_, source)
    deployment.declare()

    def run() -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "__main__.py"],
            cwd=stack.folder,
            env=stack.environment_of_run(),
            capture_output=True,
            text=True,
            check=False,
        )

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)
    assert str({id_: dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}) in done.stdout
    deployment.declare({"internal.topics.setup": "manual"})
    cluster.delete(deployment.changelog)
    refused = run()
    assert refused.returncode == 1
    assert refused.stderr.startswith("refused or failed: ")
    assert "error[MissingInternalTopics]" in refused.stdout
