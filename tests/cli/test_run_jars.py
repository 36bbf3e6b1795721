"""Which jars `headwater run` gives to Spark: only those whose hashes are known, or that a user names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headwater.cli.console import ExitCode
from headwater.cli.main import main
from headwater.toolchain import ToolchainError
from headwater_spark.commands import run as module

ARGUMENTS = ("run", "app.yaml", "--bootstrap-server", "localhost:1")


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Mapping[str, Any]]:
    """The fields of each run that the command starts; Spark does not run."""
    found: list[Mapping[str, Any]] = []

    def run_application(_: Mapping[str, Any], **more: object) -> int:
        found.append(more)
        return 0

    monkeypatch.setattr(module, "run_application", run_application)
    monkeypatch.setattr(module, "spark_java_options", lambda: ())
    monkeypatch.setattr(module, "fetched_spark_jars", lambda: ())
    monkeypatch.setattr(module, "ensure_spark_jars", lambda: (Path("pinned.jar"),))
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app.yaml").write_text("")
    return found


def run(*more: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, [*ARGUMENTS, *more])
    return done.exit_code, done.stderr


def test_jars_that_are_missing_are_those_of_the_toolchain(started: list[Mapping[str, Any]]) -> None:
    assert run() == (ExitCode.DONE, "")
    assert started[0]["jars"] == ("pinned.jar",)
    assert "spark.jars.packages" not in started[0]["conf"]


def test_jars_of_the_spark_installation_are_used(
    started: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "spark/jars").mkdir(parents=True)
    (tmp_path / "spark/jars/spark-sql-kafka-0-10_2.13-4.2.0.jar").write_text("")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "spark"))
    assert run() == (ExitCode.DONE, "")
    assert started[0]["jars"] == ()


def test_without_the_toolchain_the_jars_must_be_named(
    started: list[Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fail() -> tuple[Path, ...]:
        raise ToolchainError("Maven is missing.")

    monkeypatch.setattr(module, "ensure_spark_jars", fail)
    code, text = run()
    assert code == ExitCode.PROBLEMS
    assert "Maven is missing." in text
    assert "--jars" in text
    (tmp_path / "own.jar").write_text("")
    assert run("--jars", "own.jar") == (ExitCode.DONE, "")
    assert run("--conf", "spark.jars.packages=org.example:a:1") == (ExitCode.DONE, "")
    assert [each["jars"] for each in started] == [("own.jar",), ()]


@pytest.mark.parametrize(
    "option",
    [
        ("--jars", "http://example.com/a.jar"),
        ("--jars", "HTTP://example.com/a.jar"),
        ("--conf", "spark.jars=http://example.com/a.jar"),
        ("--conf", "spark.jars.repositories=https://a.example,http://b.example"),
        ("--conf", "spark.submit.pyFiles=http://example.com/a.py"),
        ("--conf", "spark.files=/etc/a.properties,HTTP://example.com/a"),
        ("--conf", "spark.archives=http://example.com/a.zip#a"),
    ],
)
def test_code_without_tls_is_refused(started: list[Mapping[str, Any]], option: tuple[str, str]) -> None:
    code, text = run(*option)
    assert code == ExitCode.USAGE
    assert "https://" in text
    assert not started
