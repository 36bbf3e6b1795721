"""`headwater drift` and `plan-comment` beside the real Pulumi."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infra.cli.exit_codes import ExitCode
from infra.cli.main import main
from tests.pulumi.cluster import Cluster
from tests.pulumi.conftest import World, make_world
from tests.pulumi.driver import STACK
from toolchain import PulumiToolchain
from toolchain.broker.local import LocalBroker

pytestmark = pytest.mark.pulumi


@pytest.fixture
def world(
    tmp_path: Path, pulumi_toolchain: PulumiToolchain, kafka: LocalBroker, unique: Callable[[str], str]
) -> World:
    return make_world(tmp_path / "stack", pulumi_toolchain, Cluster(kafka.bootstrap_servers), unique)


def _headwater(*arguments: str, input_text: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="headwater", input=input_text)


def _kinds(world: World, *arguments: str) -> list[tuple[str, str]]:
    server = ("--bootstrap-server", world.cluster.bootstrap_servers)
    documents = str(world.stack.folder / "documents")
    done = _headwater("drift", documents, *server, "--format", "json", *arguments)
    assert done.exit_code in (ExitCode.DONE, ExitCode.DRIFT), done.output
    findings = json.loads(done.stdout)["applications"][0]["findings"]
    return [(finding["kind"], finding["topic"]) for finding in findings]


def test_the_stack_tells_what_was_lost(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.stack._environment().items():
        monkeypatch.setenv(name, value)
    world.set_up()
    stack = ("--stack", STACK, "--project", str(world.stack.folder))
    state = world.stack.folder / "state.json"
    state.write_text(world.stack.succeed("stack", "export"), encoding="utf-8")
    assert _kinds(world, *stack) == []
    assert _kinds(world, "--stack-state", str(state)) == []
    config = world.cluster.config(world.changelog)
    world.cluster.delete(world.changelog)
    world.cluster.create(world.changelog, 4, config)
    assert _kinds(world) == []
    assert _kinds(world, *stack) == [("re-created", world.changelog)]
    assert _kinds(world, "--stack-state", str(state)) == [("re-created", world.changelog)]


def test_the_switches_of_the_stack_count(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in world.stack._environment().items():
        monkeypatch.setenv(name, value)
    world.declare()
    stack = ("--stack", STACK, "--project", str(world.stack.folder))
    assert _kinds(world, *stack)  # missing, or named otherwise in the cluster
    switches = {world.id: {"lifecycle": "released"}, "elsewhere": {"adopt": True}}
    world.stack.configure({"setup": switches})
    folder = str(world.stack.folder / "documents")
    arguments = ("drift", folder, "--bootstrap-server", world.cluster.bootstrap_servers, *stack)
    released = _headwater(*arguments, "--format", "json")
    assert (released.exit_code, released.stderr) == (ExitCode.DONE, "")
    assert json.loads(released.stdout)["applications"] == []
    world.stack.configure({"setup": {world.id: {"lifecycle": "releasd"}}, "saslPassword": "plain"})
    mistaken = _headwater(*arguments)
    assert mistaken.exit_code == ExitCode.REFUSED
    assert "releasd" in mistaken.stdout
    assert "saslPassword is a secret" in mistaken.stderr
    assert "releasd" not in mistaken.stderr


def test_a_real_preview_becomes_a_comment(world: World) -> None:
    world.declare()
    preview = world.stack.preview("--json")
    comment = _headwater("plan-comment", input_text=preview.text)
    assert comment.exit_code == ExitCode.DONE
    assert "\n### 🟢 Kafka topics: 2 to create\n" in comment.stdout
    assert world.repartition in comment.stdout
    world.cluster.create(world.repartition, 9)
    refused = _headwater("plan-comment", input_text=world.stack.preview("--json").text)
    assert "\n### 🔴 Kafka topics: refused, 1 error; nothing will be changed\n" in refused.stdout
    assert "error[OverPartitionedInternalTopic]" in refused.stdout
