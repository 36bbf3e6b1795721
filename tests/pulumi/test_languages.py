"""The Pulumi package in programs in TypeScript and Go: real language hosts and SDKs, on a real broker.

The programs construct the component by its type, because `pulumi package add` needs newer hosts to generate
an SDK.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from headwater.toolchain import PulumiToolchain
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import SOURCE_PARTITIONS, Deployment
from tests.pulumi.driver import Stack
from tests.pulumi.test_package import GUIDE, write_plugin
from tests.toolchain.programs import ensure_node_modules, ensure_pulumi_hosts

pytestmark = [pytest.mark.pulumi, pytest.mark.slow]

_NODE = Path(__file__).parent / "node"
_PROJECT = "name: headwater\nruntime: {}\nplugins: {{providers: [{{name: headwater, path: bin}}]}}\n"
_GO_MODULE = "module orders\n\ngo 1.24\n\nrequire github.com/pulumi/pulumi/sdk/v3 v3.250.0\n"
_OPTIONS = {"target": "es2020", "module": "commonjs", "moduleResolution": "node", "strict": True}


def _guide_program(language: str) -> str:
    """Return the program of the guide that constructs the component by its type."""
    pattern = rf"```{language}\n((?:(?!```).)*?headwater:index:Applications.*?)```"
    [program] = re.findall(pattern, GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert "topologies" in program
    return str(program).replace("topologies", "documents")


@pytest.fixture
def deployment(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, cluster: Cluster, unique: Callable[[str], str]
) -> Deployment:
    folders = (Path(sys.prefix) / "bin", ensure_pulumi_hosts(), pulumi_toolchain.cli.parent)
    environment = {
        "PATH": os.pathsep.join([*map(str, folders), os.environ["PATH"]]),
        "PULUMI_IGNORE_AMBIENT_PLUGINS": "false",  # the language hosts are such plugins
    }
    stack = Stack.create(
        tmp_path / "stack", pulumi_toolchain, {}, environment=environment, has_passphrase=False
    )
    stack.configure({"documents": None, "bootstrapServers": [cluster.bootstrap_servers]})
    write_plugin(stack.folder)
    source = unique("orders")
    cluster.create(source, SOURCE_PARTITIONS)
    return Deployment(stack, cluster, unique("app"), source)


def _is_applied(deployment: Deployment) -> None:
    deployment.declare()
    deployment.up()
    deployment.settles_at(SOURCE_PARTITIONS, SOURCE_PARTITIONS)
    expected = {deployment.id: dict.fromkeys(deployment.topics, SOURCE_PARTITIONS)}
    assert deployment.stack.outputs() == {"partitions": expected}
    # `up` has checked the types of the program in TypeScript.
    variables = {**deployment.stack.environment, "PULUMI_NODEJS_TRANSPILE_ONLY": "true"}
    deployment.with_environment(**variables).is_clean()


@pytest.mark.skipif(shutil.which("npm") is None, reason="needs Node.js with npm")
def test_a_program_in_typescript_declares_topics(deployment: Deployment) -> None:
    folder = deployment.stack.folder
    (folder / "Pulumi.yaml").write_text(_PROJECT.format("nodejs"))
    (folder / "package.json").write_text((_NODE / "package.json").read_text())
    (folder / "tsconfig.json").write_text(json.dumps({"compilerOptions": _OPTIONS}))
    (folder / "node_modules").symlink_to(ensure_node_modules(_NODE))
    (folder / "index.ts").write_text(_guide_program("typescript"))
    _is_applied(deployment)


@pytest.mark.soak  # on a new machine, Go compiles Pulumi's SDK: minutes on two cores
def test_a_program_in_go_declares_topics(deployment: Deployment) -> None:
    folder = deployment.stack.folder
    (folder / "Pulumi.yaml").write_text(_PROJECT.format("go"))
    (folder / "go.mod").write_text(_GO_MODULE)
    (folder / "main.go").write_text(_guide_program("go"))
    subprocess.run(["go", "mod", "tidy"], cwd=folder, check=True, capture_output=True, timeout=300)
    _is_applied(deployment)
