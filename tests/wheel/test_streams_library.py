"""The wheel contains the jar of the library for Kafka Streams, built from the sources next to it."""

import hashlib
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest

from headwater.toolchain.streams_jar import JAR, belongs_to, build_command, source_digest
from headwater.toolchain.streams_library import ensure_streams_library

_ROOT = Path(__file__).parents[2]
_IN_WHEEL = f"headwater/streams_library/{JAR}"
pytestmark = [pytest.mark.oracle, pytest.mark.slow]


def test_the_command_copies_the_jar_of_the_wheel_without_maven(repository: Path) -> None:
    """With an empty PATH and an empty cache."""
    done = subprocess.run(
        [repository / ".venv" / "bin" / "headwater", "streams-library", "-o", "libs"],
        cwd=repository,
        env={"PATH": "/nonexistent", "HEADWATER_CACHE": str(repository / "cache")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"libs/{JAR}\n", "")
    assert not (repository / "cache").exists()


@pytest.mark.parametrize("is_built_again", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_the_jar_of_the_wheel_is_what_maven_builds_from_its_sources(
    wheel: Path, tmp_path: Path, *, is_built_again: bool
) -> None:
    """The library of the tests is another build, of the same sources."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    packed = tmp_path / _IN_WHEEL
    sources, jars = packed.parent, [packed, ensure_streams_library()]
    if is_built_again:
        maven = shutil.which("mvn")
        assert maven is not None
        subprocess.run(build_command(maven, sources, tmp_path / "again"), check=True, capture_output=True)
        jars.append(tmp_path / "again" / JAR)
    assert len({hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}) == 1
    assert belongs_to(packed, sources)
    assert source_digest(sources) == source_digest(_ROOT / "streams_library")


@pytest.mark.parametrize("changed", ["pom.xml", "src/main/java/io/headwater/streams/Reports.java"])
def test_a_jar_of_other_sources_is_not_used(tmp_path: Path, changed: str) -> None:
    sources = tmp_path / "streams_library"
    shutil.copytree(_ROOT / "streams_library", sources)
    jar = ensure_streams_library()
    assert belongs_to(jar, sources)
    file = sources / changed
    file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert not belongs_to(jar, sources)
    assert not belongs_to(tmp_path / "missing.jar", sources)
    assert not belongs_to(file, sources)
