"""Tests of the container image and the systemd unit, without building an image."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import yaml
from packaging.requirements import Requirement

from headwater_spark.commands.run import run as runtime_run
from tests.deploy.conftest import DEPLOY, ROOT, copied_files, sent_files
from tests.locks import closure, locked

Golden = Callable[[Path, str], None]
_CONTAINER = DEPLOY / "container"
_FILE = (_CONTAINER / "Containerfile").read_text(encoding="utf-8")
_NOT_FOR_THE_AGENT = {"pulumi", "pulumi-kafka"}
_PROGRAM = """
import sys
from importlib.metadata import packages_distributions

locked = set(sys.argv[1:])
present = {name for name, owners in packages_distributions().items() if locked & {o.lower() for o in owners}}
absent = set(packages_distributions()) - present - {"headwater", "headwater_spark"}

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
import headwater.cli.agent_run, headwater.cli.agent
import headwater.cli.agent_history, headwater.cli.agent
import headwater.agent.command, headwater.spec, headwater.compiler, headwater.report.compiled
"""


def test_the_locks_contain_what_the_agent_needs(golden: Golden) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    direct = [Requirement(text).name for text in project["project"]["dependencies"]]
    golden(_CONTAINER / "requirements.txt", locked(closure(set(direct) - _NOT_FOR_THE_AGENT)))
    build = [Requirement(text).name for text in project["build-system"]["requires"]]
    golden(_CONTAINER / "build.txt", locked(closure(build)))


def test_the_agent_imports_only_packages_of_the_image() -> None:
    lock = (_CONTAINER / "requirements.txt").read_text(encoding="utf-8")
    locked = re.findall(r"^([A-Za-z0-9-]+)==", lock, re.MULTILINE)
    spelled = {name.lower().replace("-", separator) for name in locked for separator in "-_"}
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, *spelled], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_the_image_is_slim_pinned_and_not_run_as_root() -> None:
    assert re.findall(r"^ARG .*$", _FILE, re.MULTILINE) == ["ARG BASE"], "no default: a tag can be moved"
    assert set(re.findall(r"^FROM (\S+)", _FILE, re.MULTILINE)) == {"${BASE}"}
    assert "BASE: ${HEADWATER_BASE_IMAGE:?" in (_CONTAINER / "compose.yaml").read_text(encoding="utf-8")
    last = _FILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER (\d+):(\d+)$", last, re.MULTILINE)
    assert "RUN" not in last.replace("RUNTIME", "")
    assert all("--require-hashes" in line or "--no-deps" in line for line in _installs())


def test_only_copied_files_are_sent_to_the_build() -> None:
    assert copied_files(_FILE) == sent_files(_CONTAINER / "Containerfile.dockerignore")
    assert all((ROOT / source).exists() for source in copied_files(_FILE))


def test_the_program_accepts_the_arguments(accepts: Callable[[Iterable[str]], None]) -> None:
    [command] = re.findall(r"^CMD (\[.*\])$", _FILE, re.MULTILINE)
    accepts(json.loads(command))
    unit = (DEPLOY / "systemd" / "headwater-agent.service").read_text(encoding="utf-8")
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    program, *arguments = shlex.split(start)
    assert program.endswith("/headwater")
    accepts(arguments)
    assert "DynamicUser=yes" in unit


def test_the_unit_of_the_runtime_restarts_the_driver(tmp_path: Path) -> None:
    unit = (DEPLOY / "systemd" / "headwater-runtime.service").read_text(encoding="utf-8")
    [start] = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    document = tmp_path / "application.yaml"
    document.touch()
    program, command, file, *options = shlex.split(start)
    assert (program, command) == ("/opt/headwater/.venv/bin/headwater", "run")
    assert file == "/etc/headwater/application.yaml"
    context = runtime_run.make_context("run", [str(document), *options])
    assert context.params["master"] == "${SPARK_MASTER}"
    assert "SPARK_MASTER=spark://" in unit
    assert {"Restart=always", "KillMode=mixed"} <= set(unit.splitlines()), "Spark's JVM gets no SIGTERM"
    stop_seconds = int(re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)[0])
    assert stop_seconds * 1_000 > context.params["stop_timeout_ms"]


def test_compose_builds_this_image_and_publishes_ports_only_locally() -> None:
    services = yaml.safe_load((_CONTAINER / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert len(services) == 2
    for service in services.values():
        assert (_CONTAINER / service["build"]["context"]).resolve() == ROOT
        assert (ROOT / service["build"]["dockerfile"]).exists()
        assert service["read_only"] is True
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])


def _installs() -> list[str]:
    joined = _FILE.replace("\\\n", " ")
    return [part for part in re.split(r"&&|\n", joined) if re.search(r"pip (install|wheel)", part)]
