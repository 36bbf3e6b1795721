"""Messages about programs that are missing on this machine."""

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headwater.toolchain.__main__ import main
from headwater.toolchain.pulumi_release import VARIABLE

_GOLDEN = Path(__file__).parent / "golden"
Install = Callable[[str, str], None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Install:
    """Empty PATH; `install(program, printed)` puts a program there that prints this text."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("HEADWATER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv(VARIABLE, "")

    def put(program: str, printed: str) -> None:
        (folder / program).write_text(f"#!/bin/sh\necho '{printed}'\n")
        (folder / program).chmod(0o755)

    return put


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)


@pytest.mark.usefixtures("install")
def test_all_missing_programs_are_reported_together(tmp_path: Path) -> None:
    result = run("all")
    assert result.exit_code == 1
    assert result.output == (_GOLDEN / "nothing_installed.txt").read_text()
    assert not (tmp_path / "cache").exists()


def test_old_and_broken_programs_are_reported_with_their_versions(install: Install, tmp_path: Path) -> None:
    install("java", 'openjdk version "11.0.2" 2019-01-15')
    install("go", "go1.22.3")
    install("mvn", "no such luck")
    result = run("all")
    assert result.exit_code == 1
    text = result.output.replace(str(tmp_path), "")
    assert text == (_GOLDEN / "too_old.txt").read_text()


@pytest.mark.usefixtures("install")
def test_programs_of_a_part_that_is_left_out_are_not_required() -> None:
    assert "Go 1.24 or newer is missing" in run("all", "--without", "spark").output
    assert "Go 1.24 or newer is missing" not in run("all", "--without", "pulumi").output


def test_only_required_programs_are_checked(install: Install) -> None:
    install("java", 'openjdk version "21.0.2" 2024-01-16')
    install("mvn", "Apache Maven 3.9.6")
    result = run("pulumi")
    assert result.exit_code == 1
    assert "Go 1.24 or newer is missing" in result.output
    assert "Java" not in result.output


def test_java_home_comes_before_path(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("java", 'openjdk version "11.0.2" 2019-01-15')
    home = tmp_path / "jdk"
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").write_text("#!/bin/sh\necho 'openjdk version \"17\" 2021-09-14' >&2\n")
    (home / "bin" / "java").chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert f"Java 17 ({home}/bin/java)" in run("doctor").output


def test_the_doctor_lists_each_program(install: Install) -> None:
    install("java", 'openjdk version "21.0.2" 2024-01-16')
    install("make", "GNU Make 4.3")
    result = run("doctor")
    assert "Java 21.0.2" in result.output
    assert "make 4.3" in result.output
    assert "Maven 3.6 or newer is missing" in result.output
    assert result.exit_code == 1
