"""`headwater drift` and `plan-comment` with a real Pulumi stack."""

import json

import pytest
from click.testing import CliRunner, Result

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from tests.pulumi.conftest import Deployment, cluster, deployment, finished_stacks
from tests.pulumi.driver import STACK

pytestmark = pytest.mark.pulumi
__all__ = ["cluster", "deployment", "finished_stacks"]  # fixtures


def _headwater(*arguments: str, input_text: str | None = None) -> Result:
    return CliRunner().invoke(main, arguments, prog_name="headwater", input=input_text)


def _kinds(deployment: Deployment, *arguments: str) -> list[tuple[str, str]]:
    server = ("--bootstrap-server", deployment.cluster.bootstrap_servers)
    documents = str(deployment.stack.folder / "documents")
    done = _headwater("drift", documents, *server, "--format", "json", *arguments)
    assert done.exit_code in (ExitCode.DONE, ExitCode.DRIFT), done.output
    findings = json.loads(done.stdout)["applications"][0]["findings"]
    return [(finding["kind"], finding["topic"]) for finding in findings]


def test_the_state_of_the_stack_shows_a_re_created_topic(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    deployment.set_up()
    stack = ("--stack", STACK, "--project", str(deployment.stack.folder))
    state = deployment.stack.folder / "state.json"
    state.write_text(deployment.stack.succeed("stack", "export"), encoding="utf-8")
    assert _kinds(deployment, *stack) == []
    assert _kinds(deployment, "--stack-state", str(state)) == []
    config = deployment.cluster.config(deployment.changelog)
    deployment.cluster.delete(deployment.changelog)
    deployment.cluster.create(deployment.changelog, 4, config)
    assert _kinds(deployment) == []
    assert _kinds(deployment, *stack) == [("re-created", deployment.changelog)]
    assert _kinds(deployment, "--stack-state", str(state)) == [("re-created", deployment.changelog)]


def test_the_setup_settings_of_the_stack_are_used(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    deployment.declare()
    stack = ("--stack", STACK, "--project", str(deployment.stack.folder))
    assert _kinds(deployment, *stack)  # the topics are missing
    setup = {deployment.id: {"lifecycle": "released"}, "elsewhere": {"adopt": True}}
    deployment.stack.configure({"setup": setup})
    folder = str(deployment.stack.folder / "documents")
    arguments = ("drift", folder, "--bootstrap-server", deployment.cluster.bootstrap_servers, *stack)
    released = _headwater(*arguments, "--format", "json")
    assert (released.exit_code, released.stderr) == (ExitCode.DONE, "")
    assert json.loads(released.stdout)["applications"] == []
    deployment.stack.configure({"setup": {deployment.id: {"lifecycle": "releasd"}}, "saslPassword": "plain"})
    invalid = _headwater(*arguments)
    assert invalid.exit_code == ExitCode.REFUSED
    assert "releasd" in invalid.stdout
    assert "saslPassword is a secret" in invalid.stderr
    assert "releasd" not in invalid.stderr


def test_the_cluster_of_the_stack_is_read_and_checked(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    for name in ("HEADWATER_BOOTSTRAP_SERVERS", "KAFKA_BOOTSTRAP_SERVERS"):
        monkeypatch.delenv(name, raising=False)
    deployment.declare()
    documents = str(deployment.stack.folder / "documents")
    stack = ("--stack", STACK, "--project", str(deployment.stack.folder))
    found = _headwater("drift", documents, *stack)
    assert found.exit_code == ExitCode.DRIFT, found.output
    assert deployment.id in found.stdout
    assert "No Kafka broker is named" in _headwater("drift", documents).stderr
    deployment.stack.configure({"clusterId": "another"})
    refused = _headwater("drift", documents, *stack)
    assert refused.exit_code == ExitCode.REFUSED
    assert "WrongCluster" in refused.stdout
    # The options come first: this port has no broker.
    unreachable = _headwater("drift", documents, *stack, "--bootstrap-server", "127.0.0.1:1")
    assert unreachable.exit_code == ExitCode.PROBLEMS
    assert "127.0.0.1:1" in unreachable.stderr


@pytest.mark.soak  # `pulumi/test_policies` and `workflows/test_steps` write comments on real previews
def test_a_real_preview_becomes_a_comment(deployment: Deployment) -> None:
    deployment.declare()
    preview = deployment.stack.preview("--json")
    comment = _headwater("plan-comment", input_text=preview.text)
    assert comment.exit_code == ExitCode.DONE
    assert "\n### 🟢 Kafka topics: 2 to create\n" in comment.stdout
    assert deployment.repartition in comment.stdout
    created = {"cleanup.policy": "delete", "message.timestamp.type": "CreateTime"}
    deployment.cluster.create(deployment.repartition, 9, created)
    refused = _headwater("plan-comment", input_text=deployment.stack.preview("--json").text)
    assert "\n### 🔴 Kafka topics: refused, 1 error; nothing will be changed\n" in refused.stdout
    assert "error[OverPartitionedInternalTopic]" in refused.stdout
