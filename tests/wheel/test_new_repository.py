"""A user's own repository: the wheel, `headwater new`, and the commands of the README that it writes."""

import hashlib
import re
import subprocess
import sys
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest

from headwater.toolchain.broker.readiness import free_ports
from tests.pulumi.driver import time_saving_variables
from tests.quick_java import QUICK_JAVA

pytestmark = [pytest.mark.pulumi, pytest.mark.broker, pytest.mark.spark, pytest.mark.slow]

_ROOT = Path(__file__).parents[2]
_TRACE = "PS4='+ $EPOCHREALTIME '; set -x"
_STEP = re.compile(r"^\+ ([\d.]+) ([\w-]+ .*)$", re.MULTILINE)


def in_shell(script: str, folder: Path, environment: Mapping[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", f"{_TRACE}\n{script}"],
        cwd=folder,
        env=dict(environment),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(600)
def test_the_commands_of_the_readme_work_in_an_empty_folder(
    repository: Path, wheel: Path, environment: Mapping[str, str]
) -> None:
    modules = "import headwater, headwater_spark, sys; print(*sys.path, headwater, headwater_spark)"
    imported = in_shell(f"python -c '{modules}'", repository, environment)
    assert f"'{repository}/.venv/" in imported.stdout
    assert f"{_ROOT}/infra/headwater" not in imported.stdout
    assert str(_ROOT) not in imported.stdout.split()
    created = in_shell("headwater new .", repository, environment)
    assert created.returncode == 0
    for own in ("infra", "spark_jobs", "toolchain", "topology_schemas"):  # the folders of the clone
        (repository / own).mkdir()
        (repository / own / "__init__.py").write_text("raise ImportError('a module of the user')")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    assert f"headwater @ {wheel.as_uri()}#sha256={digest}\n" in (repository / "requirements.txt").read_text()
    assert "Headwater is installed from a file" in created.stderr

    (port,) = free_ports(1)
    stack = repository / "Pulumi.local.yaml"
    stack.write_text(stack.read_text().replace("9092", str(port)))
    readme = (repository / "README.md").read_text()
    before, _, after = readme.partition("## Try it on this machine")
    prepared = re.findall(r"^(?:headwater (?:toolchain|doctor)|eval .*)$", before, re.MULTILINE)
    tried = re.findall(r"```sh\n(.*?)```", after.partition("\n## ")[0], re.DOTALL)
    assert (len(prepared), len(tried)) == (3, 3)
    script = "\n".join((*prepared, *tried))
    script = script.replace("localhost:9092", f"localhost:{port}").replace(
        "headwater local up", f"headwater local up --port {port}"
    )
    saving = {**time_saving_variables(), "JDK_JAVA_OPTIONS": " ".join(QUICK_JAVA)}
    done = in_shell(script, repository, {**environment, **saving})
    sys.stdout.write(_times(done.stderr))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 application is valid: order-counts" in done.stdout
    assert "order-counts: first setup (manual)" in done.stdout
    assert "No drift: 3 topics of 1 application are as declared." in done.stdout
    assert {"ada\t2", "alan\t1"} <= set(done.stdout.splitlines())
    assert not (repository / ".pulumi-state").exists()


def _times(trace: str) -> str:
    """Return the seconds that each command took, from the start of one to that of the next."""
    steps = [(float(start), command) for start, command in _STEP.findall(trace)]
    return "".join(f"{end - start:6.1f} s  {command}\n" for (start, command), (end, _) in pairwise(steps))
