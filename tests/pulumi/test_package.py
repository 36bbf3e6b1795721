"""The Pulumi package in YAML programs: the plugin plans and registers what a Python program would."""

import json
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater.toolchain import PulumiToolchain
from tests.preloaded import package_plugin
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import SOURCE_PARTITIONS, Deployment
from tests.pulumi.driver import Stack
from tests.toolchain.programs import ensure_pulumi_yaml

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

GUIDE = Path(__file__).parents[2] / "docs" / "pulumi-package.md"
_PLUGIN = f"#!{sys.executable}\nfrom headwater.pulumi.package import run_plugin\nrun_plugin()\n"
"""What the wheel installs as `pulumi-resource-headwater`."""

_WITH_UNKNOWN_INPUT = """
import pulumi
from pulumi.runtime.rpc import UNKNOWN

folder = pulumi.Output.from_input(UNKNOWN if pulumi.runtime.is_dry_run() else "documents")
inputs = {"documents": [folder], "bootstrapServers": ["SERVERS"], "partitions": None}
pulumi.ComponentResource("headwater:index:Applications", "topics", inputs, None, True)
"""


def write_plugin(folder: Path, text: str = _PLUGIN) -> None:
    """Write the plugin as the wheel installs it, into the folder `bin` of a project."""
    plugin = folder / "bin" / "pulumi-resource-headwater"
    plugin.parent.mkdir()
    plugin.write_text(text)
    plugin.chmod(0o755)


def _write_program(deployment: Deployment, resources: Mapping[str, Any], **outputs: object) -> None:
    program = {
        "name": "headwater",
        "runtime": "yaml",
        "plugins": {"providers": [{"name": "headwater", "path": "bin"}]},
        "resources": resources,
        "outputs": outputs,
    }
    (deployment.stack.folder / "Pulumi.yaml").write_text(yaml.safe_dump(program))


def _applications(deployment: Deployment, **inputs: object) -> dict[str, Any]:
    properties = {
        "bootstrapServers": [deployment.cluster.bootstrap_servers],
        "documents": ["documents"],
        **inputs,
    }
    return {"type": "headwater:Applications", "properties": properties}


@pytest.fixture
def deployment(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, cluster: Cluster, unique: Callable[[str], str]
) -> Deployment:
    folders = (Path(sys.prefix) / "bin", ensure_pulumi_yaml(), pulumi_toolchain.cli.parent)
    environment = {
        "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",  # the language host is one
    }
    stack = Stack.create(
        tmp_path / "stack",
        pulumi_toolchain,
        {},
        environment=environment,
        is_preloaded=True,
        has_passphrase=False,
    )
    stack.configure({"documents": None})
    # `test_languages` starts the plugin as the wheel installs it.
    write_plugin(stack.folder, f'#!/bin/sh\nexec "{package_plugin()}" "$@"\n')
    source = unique("orders")
    cluster.create(source, SOURCE_PARTITIONS)
    return Deployment(stack, cluster, unique("app"), source)


def test_a_program_declares_topics_and_its_errors_stop_it(deployment: Deployment) -> None:
    topics = _applications(deployment)
    _write_program(deployment, {"topics": topics}, partitions="${topics.partitions}")
    deployment.declare()
    deployment.up()
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)
    exported = json.loads(deployment.stack.succeed("stack", "output", "--json"))
    assert exported == {"partitions": {deployment.id: dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}}
    deployment.is_clean()

    second = _applications(deployment, documents=["others"])
    _write_program(deployment, {"topics": topics, "others": second})
    two = deployment.stack.preview()
    assert not two.succeeded
    assert "declares two of headwater:Applications" in " ".join(two.text.split()), str(two)

    _write_program(deployment, {"topics": topics})
    destroyed = deployment.stack.run("destroy", "--yes", "--skip-preview")
    assert not destroyed.succeeded
    assert deployment.cluster.existing(deployment.topics) == set(deployment.topics)

    deployment.declare({"internal.topics.setup": "manual"})
    deployment.cluster.delete(deployment.changelog)
    refused = deployment.refused("MissingInternalTopics")
    assert "nothing was changed: 1 problem, listed above" in refused.text
    assert "RunError" not in refused.text
    assert "Traceback" not in refused.text


def test_the_program_of_the_guide_runs(deployment: Deployment) -> None:
    program, settings = re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    for written, ours in {
        "name: orders": "name: headwater",
        ".venv/bin": "bin",
        "topologies": "documents",
    }.items():
        assert written in program
        program = program.replace(written, ours)
    (deployment.stack.folder / "Pulumi.yaml").write_text(program)
    shown = yaml.safe_load(settings)["config"]
    assert list(shown) == ["headwater:bootstrapServers"]
    deployment.stack.configure({"bootstrapServers": [deployment.cluster.bootstrap_servers]})
    deployment.declare()
    deployment.up()
    expected = {deployment.id: dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}
    assert deployment.stack.outputs() == {"partitions": expected}


def test_pulumi_generates_an_sdk_from_the_package(deployment: Deployment) -> None:
    """The command of the guide. The YAML host has no step that links an SDK to a program, and says so."""
    (deployment.stack.folder / "Pulumi.yaml").write_text("name: headwater\nruntime: yaml\n")
    [command] = re.findall(r"^pulumi (package add .*)$", GUIDE.read_text(encoding="utf-8"), re.MULTILINE)
    assert ".venv/bin" in command
    added = deployment.stack.run(*command.replace(".venv/bin", "bin").split())
    assert "Successfully generated an SDK for the headwater package" in added.text, str(added)
    errors = [line for line in added.text.splitlines() if "error" in line]
    assert errors in ([], ["error: linking package: method Link not implemented"]), str(added)
    [declared] = (deployment.stack.folder / "sdks").rglob("*.yaml")
    assert yaml.safe_load(declared.read_text())["name"] == "headwater"


def test_a_limit_that_is_an_input_is_named_in_problems(deployment: Deployment) -> None:
    deployment.declare()
    _write_program(deployment, {"topics": _applications(deployment, maxNewTopics=1)})
    assert "maxNewTopics" in deployment.refused("BlastRadius").text


def test_an_input_that_a_preview_does_not_know_is_planned_by_up(deployment: Deployment) -> None:
    """A program in Python, because no plugin that is installed here has a schema for YAML."""
    deployment.declare()
    program = _WITH_UNKNOWN_INPUT.replace("SERVERS", deployment.cluster.bootstrap_servers)
    (deployment.stack.folder / "__main__.py").write_text(program)
    (deployment.stack.folder / "Pulumi.yaml").write_text(
        "name: headwater\nruntime: python\nplugins: {providers: [{name: headwater, path: bin}]}\n"
    )
    preview = deployment.stack.preview()
    assert preview.succeeded, str(preview)
    assert "documents will be known after other resources are created" in " ".join(preview.text.split())
    assert not deployment.cluster.existing(deployment.topics)
    deployment.up()
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)

    refused = deployment.stack.preview()
    assert not refused.succeeded
    assert "run `pulumi up --skip-preview`" in " ".join(refused.text.split()), str(refused)
    assert "pulumi state unprotect" not in refused.text


def test_a_stack_of_a_python_program_continues_with_the_package(deployment: Deployment) -> None:
    deployment.stack.configure(
        {"documents": "documents", "bootstrapServers": deployment.cluster.bootstrap_servers}
    )
    deployment.set_up()
    before = {resource["urn"] for resource in deployment.stack.state()}
    _write_program(deployment, {"topics": {"type": "headwater:Applications"}})
    preview = deployment.stack.preview("--diff")
    assert preview.succeeded, str(preview)
    assert not re.search(r"^\s*[-~] ", preview.text, re.MULTILINE), str(preview)
    deployment.up()
    after = {resource["urn"] for resource in deployment.stack.state()}
    assert before < after
    deployment.is_clean()
