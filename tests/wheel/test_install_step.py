"""The step of the workflows that installs Headwater: one wheel by its hash, and no file of the repository."""

import hashlib
import os
from pathlib import Path

import pytest

from tests.workflows.scripts import GITLAB, WORKFLOWS, bash, read

pytestmark = pytest.mark.slow


def _github() -> str:
    steps = read(WORKFLOWS / "github" / "headwater-preview.yml")["jobs"]["preview"]["steps"]
    return str(next(step["run"] for step in steps if step.get("name") == "Install"))


def _gitlab(folder: Path) -> str:
    return "\n".join(read(GITLAB)[".headwater"]["before_script"]).replace("/opt/headwater", str(folder))


@pytest.mark.parametrize("forge", ["github", "gitlab"])
def test_only_the_wheel_with_the_hash_is_installed(forge: str, wheel: Path, tmp_path: Path) -> None:
    """The repository has modules with the names of those that the step runs; they leave a file."""
    checkout, environment = tmp_path / "checkout", tmp_path / "runner" / "headwater"
    checkout.mkdir()
    environment.parent.mkdir()
    for module in ("venv", "pip", "ensurepip", "sitecustomize", "subprocess"):
        (checkout / f"{module}.py").write_text(f"open({str(tmp_path / 'stolen')!r}, 'w').close()\n")
    script = _github() if forge == "github" else _gitlab(environment)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    shared = {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(environment.parent),
        "GITHUB_PATH": str(tmp_path / "path"),
        "PYTHON_IMAGE": "python@sha256:0",
        "PIP_NO_INDEX": "1",
    }
    for hash_, refusal in (("0" * 64, "Expected sha256 000"), (digest, "No matching distribution found")):
        code, text = bash(script, checkout, {**shared, "HEADWATER": f"{wheel.as_uri()}#sha256={hash_}"})
        assert code != 0
        assert refusal in text, text
        installed = [*environment.glob("lib/*/site-packages/headwater/__init__.py")]
        assert len(installed) == (hash_ == digest), text
    assert "attrs==" in text, "its dependencies are those of the lock in the wheel"
    code, text = bash(script, checkout, {**shared, "HEADWATER": ""})
    assert code != 0
    assert not (tmp_path / "stolen").exists()
