"""The wheel contains what users run, and nothing that only the tests of this repository need."""

import subprocess
import zipfile
from pathlib import Path

_ROOT = Path(__file__).parents[2]
_PACKAGES = ("infra", "spark_jobs", "streams_library", "toolchain", "topology_schemas")
_FOR_TESTS = (
    *("toolchain/actionlint.py", "toolchain/promtool.py", "toolchain/schema_registry.py"),
    *("toolchain/go/actionlint/", "toolchain/go/promtool/", "toolchain/maven/kafka-"),
)


def test_the_wheel_contains_all_files_of_its_packages_except_those_for_tests(wheel: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "--", *_PACKAGES], cwd=_ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    expected = {name for name in listed if not name.startswith(_FOR_TESTS)}
    assert len(expected) < len(listed)
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert expected - found == set()
    assert not [name for name in found if name.startswith(_FOR_TESTS) or not name.startswith(_PACKAGES)]


def test_no_module_of_the_wheel_imports_one_that_it_does_not_contain() -> None:
    names = [Path(name).stem for name in _FOR_TESTS if name.endswith(".py")]
    searched = subprocess.run(
        ["git", "grep", "-lE", rf"toolchain(\.| import .*)({'|'.join(names)})", "--", *_PACKAGES],
        cwd=_ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not [name for name in searched.stdout.split() if name.endswith(".py")]
