"""`plan --stack` reads the setup records and settings of a stack."""

import json

import pytest

from headwater.change.ownership import write_ownership
from headwater.cli.console import ExitCode
from headwater.kafka import Connection
from headwater.model.records import OwnershipChange, OwnershipRecord, StackIdentity
from headwater.toolchain import file_backend
from tests.cli.conftest import Headwater
from tests.pulumi.conftest import Deployment, cluster, deployment, finished_stacks
from tests.pulumi.driver import STACK

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.slow]
__all__ = ["cluster", "deployment", "finished_stacks"]  # fixtures
_TOPIC = "kafka:index/topic:Topic"


def test_plan_knows_the_setup_records(
    headwater: Headwater,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment.set_up({"internal.topics.setup": "manual"})
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = deployment.stack.folder
    arguments = ("plan", folder / "documents", "--bootstrap-server", deployment.cluster.bootstrap_servers)
    of_stack = (*arguments, "--stack", STACK, "--project", folder)
    clean = headwater(*of_stack)
    assert (clean.returncode, clean.stderr) == (ExitCode.DONE, "")
    assert "2 unchanged" in clean.stdout
    assert headwater("plan", *of_stack[2:]).stdout == clean.stdout, "the documents of the stack"
    assert "InternalTopicsAlreadySetup" in headwater(*arguments).stderr
    other = folder / "other.yaml"
    other.write_text(f"application: {{id: other}}\ntopology: [{{stream: {deployment.source}}}]\n")
    for command in ("plan", "drift"):
        partly = headwater(command, other, *of_stack[2:])
        assert partly.returncode == ExitCode.REFUSED
        assert "ApplicationRemoved" in f"{partly.stdout}{partly.stderr}"
        assert partly.stderr.endswith(
            "Note: name all documents of the stack, or no FILES: then its documents are read.\n"
        )
    deployment.cluster.delete(deployment.changelog)
    lost = headwater(*of_stack)
    assert lost.returncode == ExitCode.REFUSED
    assert "was set up and no longer exists" in " ".join(lost.stderr.split())
    # With `pulumi login` instead of the variable, Pulumi remembers the backend.
    deployment.stack.succeed("login", file_backend(folder / "state"))
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    assert headwater(*of_stack).stderr == lost.stderr


def test_plan_applies_the_settings_of_the_stack(
    headwater: Headwater,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Switches for applications in other files are allowed; policy files are relative to the project."""
    deployment.declare({"internal.topics.setup": "manual"})
    (deployment.stack.folder / "rules.yaml").write_text(
        "version: 1\npolicies:\n  - topicPartitions: {max: 3}\n"
    )
    deployment.stack.configure({"policies": "rules.yaml", "maxNewTopics": 1, "clusterId": "another"})
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = deployment.stack.folder
    server = ("--bootstrap-server", deployment.cluster.bootstrap_servers)
    arguments = ("plan", folder / "documents", *server, "--stack", STACK, "--project", folder)
    refused = headwater(*arguments)
    assert refused.returncode == ExitCode.REFUSED
    for code in ("BlastRadius", "WrongCluster", "PolicyViolated"):
        assert f"error[{code}]" in refused.stderr
    copy = folder / "records.json"
    written = headwater("records", "--stack", STACK, "--project", folder, "--output", copy)
    assert (written.returncode, written.stderr) == (ExitCode.DONE, "")
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    without_pulumi = headwater(*arguments, "--stack-state", copy)
    assert (without_pulumi.returncode, without_pulumi.stderr) == (ExitCode.REFUSED, refused.stderr)
    monkeypatch.setenv("PULUMI_BACKEND_URL", file_backend(folder / "state"))
    switches = {deployment.id: {"lifecycle": "released"}, "elsewhere": {"adopt": True}}
    deployment.stack.configure({"policies": None, "maxNewTopics": 2, "clusterId": None, "setup": switches})
    released = headwater(*arguments)
    assert (released.returncode, released.stderr) == (ExitCode.DONE, "")
    assert "to create" not in released.stdout
    deployment.stack.configure({"setup": {deployment.id: {"adopted": True}}, "maxNewTopic": 3})
    mistaken = headwater(*arguments)
    assert mistaken.returncode == ExitCode.REFUSED
    assert "Did you mean maxNewTopics?" in mistaken.stderr
    assert "adopted" in mistaken.stderr


@pytest.mark.parametrize("is_only_program", [True, False])
def test_plan_refuses_topics_that_pulumi_would_delete(
    headwater: Headwater, deployment: Deployment, monkeypatch: pytest.MonkeyPatch, *, is_only_program: bool
) -> None:
    deployment.set_up()
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = deployment.stack.folder
    if not is_only_program:
        (folder / "__main__.py").write_text("from headwater.pulumi import deploy\n")
    written = headwater("records", "--stack", STACK, "--project", folder)
    state = json.loads(written.stdout)
    others = {
        name: f"urn:pulumi:{STACK}::own::{_TOPIC}::{name}" for name in ("elsewhere", deployment.changelog)
    }
    state["deployment"]["resources"] += [
        {"urn": urn, "type": _TOPIC, "outputs": {"name": name}} for name, urn in others.items()
    ]
    copy = folder / "records.json"
    copy.write_text(json.dumps(state))
    server = ("--bootstrap-server", deployment.cluster.bootstrap_servers)
    done = headwater("plan", folder / "documents", *server, "--project", folder, "--stack-state", copy)
    assert done.returncode == ExitCode.REFUSED
    text = " ".join(done.stderr.split())
    refused = {name for name, urn in others.items() if f"pulumi state delete --force '{urn}'" in text}
    assert refused == (set(others) if is_only_program else {deployment.changelog})


def test_missing_stack(
    headwater: Headwater,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment.declare()
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = deployment.stack.folder
    server = ("--bootstrap-server", deployment.cluster.bootstrap_servers)
    done = headwater("plan", folder / "documents", *server, "--stack", "nowhere", "--project", folder)
    assert done.returncode == ExitCode.PROBLEMS
    assert "nowhere" in done.stderr
    assert "--project" in done.stderr


def test_a_state_that_a_killed_pulumi_left_unreadable(
    headwater: Headwater,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without `metadata=skip`, Pulumi truncates a file next to the state and writes it again."""
    folder = deployment.stack.folder
    plain = deployment.with_environment(PULUMI_BACKEND_URL=f"file://{folder / 'state'}").stack
    deployment.declare()
    exported = folder / "exported.json"
    exported.write_text(plain.succeed("stack", "export"))
    plain.succeed("stack", "import", "--file", str(exported))
    [attributes] = (folder / "state").rglob(f"{STACK}.json.attrs")
    attributes.write_bytes(b"")
    for name, value in plain._environment().items():
        monkeypatch.setenv(name, value)
    server = ("--bootstrap-server", deployment.cluster.bootstrap_servers)
    arguments = ("plan", folder / "documents", *server, "--stack", STACK, "--project", folder)
    unreadable = headwater(*arguments)
    assert unreadable.returncode == ExitCode.PROBLEMS
    assert "failed to load checkpoint: EOF" in unreadable.stderr
    assert "-name '*.attrs' -size 0 -delete" in unreadable.stderr
    attributes.unlink()
    assert headwater(*arguments).returncode == ExitCode.DONE


def test_plan_and_drift_find_that_another_stack_manages_the_application(
    headwater: Headwater,
    deployment: Deployment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    deployment.set_up()
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    other = StackIdentity("another id", "organization/headwater/other")
    record = OwnershipRecord(application_id=deployment.id, stack=other)
    servers = deployment.cluster.bootstrap_servers
    write_ownership(Connection(bootstrap_servers=(servers,)), OwnershipChange((record,)))
    for command in ("plan", "drift"):
        arguments = (command, deployment.stack.folder / "documents", "--bootstrap-server", servers)
        refused = headwater(*arguments, "--stack", STACK, "--project", deployment.stack.folder)
        assert refused.returncode == ExitCode.REFUSED
        assert "ManagedByAnotherStack" in refused.stdout + refused.stderr
        assert "organization/headwater/other" in refused.stdout + refused.stderr
    without_stack = ("drift", deployment.stack.folder / "documents", "--bootstrap-server", servers)
    assert headwater(*without_stack).returncode == ExitCode.DONE
