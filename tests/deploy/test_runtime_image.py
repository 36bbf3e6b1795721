"""Tests of the image of the runtime without building it: locks, files, and its entrypoint with real Spark."""

import os
import re
import subprocess
import tomllib
from collections.abc import Callable
from pathlib import Path

import pyspark
import pytest
from packaging.requirements import Requirement

from headwater.toolchain import spark_java_options
from tests.deploy.conftest import DEPLOY, ROOT, copied_files, sent_files
from tests.locks import closure, locked
from tests.quick_java import QUICK_JAVA

_CONTAINER = DEPLOY / "container"
_FILE = (_CONTAINER / "runtime.Containerfile").read_text(encoding="utf-8")
_ENTRYPOINT = _CONTAINER / "runtime-entrypoint.sh"
_SPARK_HOME = Path(pyspark.__file__).parent
_NOT_FOR_THE_RUNTIME = {"pulumi", "pulumi-kafka"}
_PRINT = "#!/bin/sh\nprintf '%s\\n' \"$@\"\n"
_EXECUTOR = {
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@127.0.0.1:1",
    "SPARK_EXECUTOR_ID": "7",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "256m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "127.0.0.1",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "orders-exec-7",
}

Golden = Callable[[Path, str], None]


def _started(program: str, tmp_path: Path, arguments: list[str], **variables: str) -> list[str]:
    """Return the arguments with which the entrypoint starts `program`, which this test replaces."""
    home = tmp_path / "spark"
    (home / "bin").mkdir(parents=True)
    for name in ("java", "headwater", "spark-submit"):
        file = home / "bin" / name
        file.write_text(_PRINT if name == program else "#!/bin/sh\nexit 9\n", encoding="utf-8")
        file.chmod(0o755)
    environment = {"PATH": f"{home / 'bin'}:/usr/bin:/bin", "SPARK_HOME": str(home), **variables}
    done = subprocess.run(
        ["bash", _ENTRYPOINT, *arguments], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_lock_contains_what_the_runtime_needs(golden: Golden) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *extras["spark"], *extras["protobuf"]]
    direct = {Requirement(text).name for text in texts} - _NOT_FOR_THE_RUNTIME
    golden(_CONTAINER / "runtime-requirements.txt", locked(closure(direct)))


def test_the_image_is_pinned_and_not_run_as_root() -> None:
    assert re.findall(r"^ARG .*$", _FILE, re.MULTILINE) == ["ARG BASE"], "no default: a tag can be moved"
    assert set(re.findall(r"^FROM (\S+)", _FILE, re.MULTILINE)) == {"${BASE}"}
    last = _FILE.rpartition("\nFROM ")[2]
    assert re.search(r"^USER 10001:10001$", last, re.MULTILINE)
    installs = [part for part in re.split(r"&&|\n", _FILE.replace("\\\n", " ")) if "pip install" in part]
    assert installs
    assert all("--require-hashes" in install or "--no-deps" in install for install in installs)


def test_only_copied_files_are_sent_to_the_build() -> None:
    assert copied_files(_FILE) == sent_files(_CONTAINER / "runtime.Containerfile.dockerignore")
    assert all((ROOT / source).exists() for source in copied_files(_FILE))


def test_paths_of_the_image_are_those_of_its_version_of_python() -> None:
    [home] = re.findall(r"SPARK_HOME=(\S+)", _FILE)
    packages = Path(home).parent
    assert _SPARK_HOME.name == Path(home).name
    assert packages.parts[-2] == "python3.11"
    program = f"local://{packages}/headwater_spark/run_main.py"
    assert program in (DEPLOY / "kubernetes" / "spark" / "spark-application.yaml").read_text(encoding="utf-8")


def test_a_driver_is_submitted_in_client_mode(tmp_path: Path) -> None:
    passed = [
        "driver",
        "--properties-file",
        "/opt/spark/conf/spark.properties",
        "--class",
        "P",
        "local:///x.py",
        "a b",
    ]
    started = _started("spark-submit", tmp_path, passed, SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")
    assert started[-6:] == passed[1:]
    assert started[:4] == ["--deploy-mode", "client", "--conf", "spark.driver.bindAddress=10.0.0.7"]


def test_an_executor_gets_the_options_of_its_jvm(tmp_path: Path) -> None:
    options = {"SPARK_JAVA_OPT_0": "-Da=b c", "SPARK_JAVA_OPT_1": "-Dd=e", "SPARK_JAVA_OPT_3": "-Dskipped"}
    started = _started("java", tmp_path, ["executor"], **_EXECUTOR, **options)
    assert started[:4] == ["-Da=b c", "-Dd=e", "-Xms256m", "-Xmx256m"]
    assert started[-2:] == ["--podName", "orders-exec-7"]


def test_other_arguments_are_a_command_of_headwater(tmp_path: Path) -> None:
    assert _started("headwater", tmp_path, ["run", "a b.yaml"]) == ["run", "a b.yaml"]


def test_a_missing_variable_stops_the_entrypoint() -> None:
    done = subprocess.run(
        ["bash", _ENTRYPOINT, "executor"],
        env={"PATH": "/usr/bin:/bin", "SPARK_HOME": str(_SPARK_HOME)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "SPARK_EXECUTOR_MEMORY: unbound variable" in done.stderr


@pytest.mark.slow
@pytest.mark.spark
def test_an_executor_of_spark_understands_its_arguments() -> None:
    """No driver answers: the real backend of Spark parses its arguments and ends when it cannot connect."""
    java = (*QUICK_JAVA, *spark_java_options())
    options = {f"SPARK_JAVA_OPT_{number}": option for number, option in enumerate(java)}
    done = subprocess.run(
        ["bash", _ENTRYPOINT, "executor"],
        env={**os.environ, "SPARK_HOME": str(_SPARK_HOME), **_EXECUTOR, **options},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode != 0
    assert "Failed to connect to /127.0.0.1:1" in done.stdout + done.stderr
