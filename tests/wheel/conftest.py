"""The wheel of this repository, installed where the repository is out of reach."""

import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder],
        cwd=_ROOT,
        capture_output=True,
        check=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def repository(wheel: Path, tmp_path: Path) -> Path:
    """Return an empty folder with an environment `.venv` in which the wheel is installed.

    Its dependencies are those of this environment. The link to this repository is not followed there: a .pth
    file counts only in the environment's own folder.
    """
    folder = tmp_path / "shop-topics"
    environment = folder / ".venv"
    venv.create(environment, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python"]
    subprocess.run([*pip, str(environment), "install", "--no-deps", "--no-index", str(wheel)], check=True)
    return folder
