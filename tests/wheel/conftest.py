"""The wheel of this repository, installed where the repository is out of reach."""

import fcntl
import os
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from headwater.toolchain.broker.readiness import free_ports
from tests.wheel.walk import Walk

_USERS = ("HEADWATER_BOOTSTRAP", "HEADWATER_S", "KAFKA_", "PULUMI_", "PYTHON", "VIRTUAL_ENV")
_ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, which one worker of the run builds."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    folder = shared / "wheel"
    with (shared / "wheel.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            draft = tmp_path_factory.mktemp("dist")
            subprocess.run(
                [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", draft],
                cwd=_ROOT,
                capture_output=True,
                check=True,
            )
            draft.rename(folder)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture
def repository(wheel: Path, tmp_path: Path) -> Path:
    """Return an empty folder with an environment `.venv` in which the wheel is installed.

    Its dependencies are those of this environment. The link to this repository is not followed there: a .pth
    file counts only in the environment's own folder. Python compiles only what the commands import.
    """
    folder = tmp_path / "shop-topics"
    environment = folder / ".venv"
    venv.create(environment, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(environment)}))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python"]
    offline = ("--no-deps", "--no-index")
    subprocess.run([*pip, str(environment), "install", "--no-compile", *offline, str(wheel)], check=True)
    return folder


@pytest.fixture
def environment(repository: Path) -> Iterator[Mapping[str, str]]:
    """The variables of a shell in which the environment of the repository is active."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_USERS)}
    variables = {
        **inherited,
        "PATH": f"{repository / '.venv' / 'bin'}:{os.environ['PATH']}",
        "XDG_STATE_HOME": str(repository.parent / "state"),
    }
    yield variables
    subprocess.run(["headwater", "local", "down"], env=variables, check=True, capture_output=True)


@pytest.fixture
def walk(repository: Path, environment: Mapping[str, str]) -> Iterator[Walk]:
    """A user in an empty folder with the wheel, and a broker of the user's own port."""
    port, control = free_ports(2)
    walk = Walk(
        repository,
        {**environment, "COLUMNS": "120"},
        {
            **{f"{host}:9092": f"localhost:{port}" for host in ("localhost", "broker", "kafka")},
            "headwater local up": f"headwater local up --port {port}",
            "127.0.0.1:9878": f"127.0.0.1:{control}",
        },
    )
    yield walk
    walk.report()
