"""The wheel contains what users run, and nothing that only the tests of this repository need."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from headwater.toolchain.streams_jar import JAR

pytestmark = pytest.mark.slow

_ROOT = Path(__file__).parents[2]
_FOLDERS = {
    "infra/headwater/": "headwater/",
    "spark_jobs/headwater_spark/": "headwater_spark/",
    "spark_jobs/": "headwater_spark/",
    "topology_schemas/": "headwater/topology_schemas/",
    "streams_library/": "headwater/streams_library/",
    "docs/problems.md": "headwater/docs/problems.md",
    "deploy/grafana/": "headwater/deploy/grafana/",
    "deploy/prometheus/": "headwater/deploy/prometheus/",
}
"""Folder of the repository → folder of the wheel; the first one that fits."""
_FOR_TESTS = "headwater/toolchain/maven/kafka-"


def _in_wheel(name: str) -> str:
    return next(f"{new}{name.removeprefix(old)}" for old, new in _FOLDERS.items() if name.startswith(old))


def test_the_wheel_contains_all_files_of_its_packages_except_those_for_tests(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--", *_FOLDERS], cwd=_ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    expected = {name for name in map(_in_wheel, listed) if not name.startswith(_FOR_TESTS)}
    assert len(expected) < len(listed)
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    # It is built, see test_streams_library.py. Without Maven it is missing.
    assert found - {f"headwater/streams_library/{JAR}"} == expected


def test_the_wheel_installs_its_commands_and_the_plugin_of_pulumi(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        [file] = [name for name in archive.namelist() if name.endswith(".dist-info/entry_points.txt")]
        lines = archive.read(file).decode().splitlines()
    assert "headwater = headwater.cli.main:main" in lines
    assert "pulumi-resource-headwater = headwater.pulumi.package:run_plugin" in lines


def test_no_module_of_the_wheel_imports_tests() -> None:
    searched = subprocess.run(
        ["git", "grep", "-lE", r"^\s*(from|import) tests\b", "--", *_FOLDERS],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (searched.returncode, searched.stdout) == (1, "")
