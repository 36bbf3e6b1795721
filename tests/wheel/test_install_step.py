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


_NO_WHEEL, _NO_DEPENDENCY = "Expected sha256 000", "No matching distribution found"


@pytest.mark.parametrize(
    ("forge", "refusals"),
    [
        ("github", (_NO_WHEEL, _NO_DEPENDENCY)),
        ("gitlab", (_NO_DEPENDENCY,)),
        pytest.param("gitlab", (_NO_WHEEL, _NO_DEPENDENCY), marks=pytest.mark.soak),
    ],
)
def test_only_the_wheel_with_the_hash_is_installed(
    forge: str, refusals: tuple[str, ...], wheel: Path, tmp_path: Path
) -> None:
    """The repository has modules with the names of those that the step runs; they leave a file.

    The wheel with its hash is installed, and then its dependencies are missing.
    """
    checkout, environment = tmp_path / "checkout", tmp_path / "runner" / "headwater"
    checkout.mkdir()
    environment.parent.mkdir()
    for module in ("venv", "pip", "ensurepip", "sitecustomize", "subprocess"):
        (checkout / f"{module}.py").write_text(f"open({str(tmp_path / 'stolen')!r}, 'w').close()\n")
    script = _github() if forge == "github" else _gitlab(environment)
    shared = {
        "PATH": os.environ["PATH"],
        "RUNNER_TEMP": str(environment.parent),
        "GITHUB_PATH": str(tmp_path / "path"),
        "PYTHON_IMAGE": "python@sha256:0",
        "PIP_NO_INDEX": "1",
        "PIP_COMPILE": "0",  # nothing that is installed runs
    }
    code, text = bash(script, checkout, {**shared, "HEADWATER": ""})
    assert code != 0
    assert not environment.exists()
    for refusal in refusals:  # the second one finds the environment of the first one
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest() if refusal == _NO_DEPENDENCY else "0" * 64
        code, text = bash(script, checkout, {**shared, "HEADWATER": f"{wheel.as_uri()}#sha256={digest}"})
        assert code != 0
        assert refusal in text, text
        installed = [*environment.glob("lib/*/site-packages/headwater/__init__.py")]
        assert len(installed) == (refusal == _NO_DEPENDENCY), text
        # Its dependencies are the dependencies of the lock in the wheel.
        assert ("attrs==" in text) == (refusal == _NO_DEPENDENCY), text
    assert not (tmp_path / "stolen").exists()
