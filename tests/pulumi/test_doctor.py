"""`headwater doctor --stack`: settings, connection and what a killed run left behind."""

import json
import os
import shutil
import signal
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headwater.cli.main import main
from headwater.toolchain import machine
from tests.pulumi.conftest import Deployment
from tests.pulumi.driver import STACK, kill, wait_for_lines
from tests.pulumi.test_interruption import CREATED, SECONDS, SLOWLY, many

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.slow]

VERSION = cache(machine.Program.version)
"""Each run of `doctor` would start Maven, Pulumi and others again."""

Checks = Mapping[str, Mapping[str, Any]]
RunDoctor = Callable[..., tuple[int, Checks]]


@pytest.fixture
def doctor(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> RunDoctor:
    """Run the command on the deployment's stack; return its exit code, and check → finding."""
    monkeypatch.setattr(machine.Program, "version", VERSION)
    for name, value in deployment.stack._environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("HEADWATER_BOOTSTRAP_SERVERS", raising=False)

    def run(*options: str) -> tuple[int, Checks]:
        arguments = ["doctor", "--stack", STACK, "--project", str(deployment.stack.folder), *options]
        result = CliRunner().invoke(main, [*arguments, "--format", "json"])
        checks = json.loads(result.stdout)["checks"]
        return result.exit_code, {check["check"]: check for check in checks}

    return run


def test_a_stack_that_is_set_up_is_fine(deployment: Deployment, doctor: RunDoctor) -> None:
    deployment.declare({"partition.autoscaling.enabled": "true"})
    deployment.stack.set_secret("saslPassword", "not-to-be-shown")
    code, checks = doctor()
    assert "not-to-be-shown" not in json.dumps(checks)
    (deployment.stack.folder / "rules.yaml").write_text("policies:\n  - topicPartitions: {max: 9}\n")
    deployment.stack.configure({"saslPassword": None, "policies": "rules.yaml"})
    code, checks = doctor()
    assert code == 0, checks
    fine = ("backend", "state-files", "lock", "pending-operations", "settings", "connection", "policies")
    for check in fine:
        assert checks[check]["status"] == "ok", checks[check]
    assert "metadata=skip" not in checks["backend"]["text"]

    (deployment.stack.folder / "rules.yaml").write_text(
        "policies:\n  - topicPartitions: {max: 9}\n"
        "  - applicationId: {pattern: 'shop-.*', severity: warning}\n"
    )
    code, checks = doctor()
    assert (code, checks["policies"]["status"]) == (0, "warning")
    assert f"Application id {deployment.id} does not match the pattern" in checks["policies"]["text"]


def test_what_a_killed_run_left_is_found_and_the_remedies_help(
    deployment: Deployment, doctor: RunDoctor
) -> None:
    names = many(deployment)
    process = deployment.stack.start(*SLOWLY)
    wait_for_lines(process, CREATED, count=3, seconds=SECONDS)
    os.killpg(process.pid, signal.SIGSTOP)
    try:
        _, checks = doctor()
    finally:
        kill(process)
    assert checks["lock"]["status"] == "warning"
    assert f"process {process.pid})" in checks["lock"]["text"]
    assert "this process is running" in checks["lock"]["text"]

    code, checks = doctor()
    assert (code, checks["lock"]["status"]) == (1, "error")
    assert "this process has ended" in checks["lock"]["text"]
    assert "pulumi cancel" in checks["lock"]["fix"]
    deployment.stack.succeed("cancel", "--yes")
    code, checks = doctor()
    assert (code, checks["lock"]["status"]) == (0, "ok")
    _add_pending_operation(deployment, names[0])
    pending = doctor()[1]["pending-operations"]
    assert pending["status"] == "warning"
    assert names[0] in pending["text"]
    deployment.up()
    deployment.stack.succeed("refresh", "--yes", "--clear-pending-creates")
    assert doctor()[1]["pending-operations"]["status"] == "ok"


def _add_pending_operation(deployment: Deployment, name: str) -> None:
    """Write a pending operation into the state: a kill leaves one only at some moments."""
    (file,) = (deployment.stack.folder / "state").rglob(f"stacks/*/{STACK}.json")
    state = json.loads(file.read_text())
    latest = state["checkpoint"]["latest"]
    provider = next(each for each in latest["resources"] if each["urn"].endswith("::kafka"))
    topic = {
        "urn": f"{provider['urn'].rpartition('::pulumi:providers:')[0]}::kafka:index/topic:Topic::{name}",
        "custom": True,
        "type": "kafka:index/topic:Topic",
        "inputs": {"name": name},
        "provider": f"{provider['urn']}::{provider['id']}",
    }
    latest["pending_operations"] = [{"resource": topic, "type": "creating"}]
    file.write_text(json.dumps(state))


@pytest.mark.soak  # without Pulumi: `doctor/test_backend_files`
def test_an_empty_attribute_file_is_named(
    deployment: Deployment, doctor: RunDoctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = deployment.stack.folder / "state"
    monkeypatch.setenv("PULUMI_BACKEND_URL", f"file://{state}")
    _, checks = doctor()
    assert (checks["state-files"]["status"], checks["backend"]["status"]) == ("warning", "ok")
    (stack,) = state.rglob(f"{STACK}.json")
    attributes = Path(f"{stack}.attrs")
    attributes.touch()
    code, checks = doctor()
    assert (code, checks["state-files"]["status"]) == (1, "error")
    assert str(attributes) in checks["state-files"]["fix"]
    assert "backend" not in checks
    attributes.unlink()
    assert doctor()[1]["backend"]["status"] == "ok"


def test_a_missing_stack_and_wrong_settings_are_reported(deployment: Deployment, doctor: RunDoctor) -> None:
    deployment.declare()
    deployment.stack.configure({"documnts": "documents"})
    code, checks = doctor()
    assert code == 1
    assert "Did you mean documents?" in checks["settings"]["text"]
    shutil.rmtree(deployment.stack.folder / "state" / ".pulumi" / "stacks")
    code, checks = doctor()
    assert code == 1
    assert checks["backend"]["status"] == "error"
    assert "settings of the stack" in checks["connection"]["text"]
    assert f"pulumi stack init {STACK}" in checks["backend"]["fix"]
