"""`plan --stack` reads the setup records and settings of a stack."""

import pytest

from infra.cli.exit_codes import ExitCode
from tests.cli.conftest import Headwater
from tests.pulumi.conftest import World, cluster, world
from tests.pulumi.driver import STACK

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.slow]
__all__ = ["cluster", "world"]  # fixtures


def test_plan_knows_the_setup_records(
    headwater: Headwater,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.set_up({"internal.topics.setup": "manual"})
    for name, value in world.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = world.stack.folder
    arguments = ("plan", folder / "documents", "--bootstrap-server", world.cluster.bootstrap_servers)
    of_stack = (*arguments, "--stack", STACK, "--project", folder)
    clean = headwater(*of_stack)
    assert (clean.returncode, clean.stderr) == (ExitCode.DONE, "")
    assert "2 unchanged" in clean.stdout
    assert "InternalTopicsAlreadySetup" in headwater(*arguments).stderr
    world.cluster.delete(world.changelog)
    lost = headwater(*of_stack)
    assert lost.returncode == ExitCode.REFUSED
    assert "was set up and no longer exists" in lost.stderr
    # With `pulumi login` instead of the variable, Pulumi remembers the backend.
    world.stack.succeed("login", f"file://{folder / 'state'}")
    monkeypatch.delenv("PULUMI_BACKEND_URL")
    assert headwater(*of_stack).stderr == lost.stderr


def test_plan_applies_the_settings_of_the_stack(
    headwater: Headwater,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Switches for applications in other files are allowed; policy files are relative to the project."""
    world.declare({"internal.topics.setup": "manual"})
    (world.stack.folder / "rules.yaml").write_text("version: 1\npolicies:\n  - topicPartitions: {max: 3}\n")
    world.stack.configure({"policies": "rules.yaml", "maxNewTopics": 1, "clusterId": "another"})
    for name, value in world.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = world.stack.folder
    server = ("--bootstrap-server", world.cluster.bootstrap_servers)
    arguments = ("plan", folder / "documents", *server, "--stack", STACK, "--project", folder)
    refused = headwater(*arguments)
    assert refused.returncode == ExitCode.REFUSED
    for code in ("BlastRadius", "WrongCluster", "PolicyViolated"):
        assert f"error[{code}]" in refused.stderr
    switches = {world.id: {"lifecycle": "released"}, "elsewhere": {"adopt": True}}
    world.stack.configure({"policies": None, "maxNewTopics": 2, "clusterId": None, "setup": switches})
    released = headwater(*arguments)
    assert (released.returncode, released.stderr) == (ExitCode.DONE, "")
    assert "to create" not in released.stdout
    world.stack.configure({"setup": {world.id: {"adopted": True}}, "maxNewTopic": 3})
    mistaken = headwater(*arguments)
    assert mistaken.returncode == ExitCode.REFUSED
    assert "Did you mean maxNewTopics?" in mistaken.stderr
    assert "adopted" in mistaken.stderr


def test_missing_stack(
    headwater: Headwater,
    world: World,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world.declare()
    for name, value in world.stack._environment().items():
        monkeypatch.setenv(name, value)
    folder = world.stack.folder
    server = ("--bootstrap-server", world.cluster.bootstrap_servers)
    done = headwater("plan", folder / "documents", *server, "--stack", "nowhere", "--project", folder)
    assert done.returncode == ExitCode.PROBLEMS
    assert "nowhere" in done.stderr
    assert "--project" in done.stderr
