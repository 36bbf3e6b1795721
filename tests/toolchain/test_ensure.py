"""Real downloads and builds, and programs that need none."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from click.testing import CliRunner

from headwater.cli.main import main
from headwater.toolchain import (
    KafkaDistribution,
    PulumiToolchain,
    ToolchainError,
    ensure_kafka,
    ensure_pulumi,
    pulumi_cli,
    pulumi_release,
)
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.kafka_plugin import PLUGIN_VERSION
from headwater.toolchain.maven_jars import verify_jars
from headwater.toolchain.preparation import needs_exports, shell_exports
from headwater.toolchain.pulumi_cli import needed_programs

_PLUGIN = f"resource-kafka-v{PLUGIN_VERSION}"


@pytest.mark.slow
def test_two_runs_at_once_download_the_broker_once(tmp_path: Path) -> None:
    environment = {**os.environ, "HEADWATER_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", "from headwater.toolchain import ensure_kafka; ensure_kafka()"]
    runs = [subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    result = [run.communicate()[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], result
    assert sum("downloading with Maven: done" in text for text in result) == 1, result
    assert [entry.name for entry in tmp_path.glob("kafka-*")]


def test_a_version_that_is_not_pinned_is_refused() -> None:
    with pytest.raises(
        ToolchainError, match=r"Kafka 1\.0\.0 is not one of the pinned versions: 3\.9\.2, 4\.1\.1, "
    ):
        ensure_kafka(version="1.0.0")


@pytest.mark.broker
def test_jars_that_differ_from_the_locked_ones_are_refused(
    kafka_distribution: KafkaDistribution, tmp_path: Path
) -> None:
    jar = next(kafka_distribution.jars.glob("kafka-clients-*.jar"))
    fetched, listing = tmp_path / "jars", tmp_path / "listing.sha256"
    fetched.mkdir()
    (fetched / jar.name).write_bytes(jar.read_bytes() + b"!")
    (fetched / "surplus.jar").touch()
    listing.write_text(f"{'0' * 64}  {jar.name}\n{'0' * 64}  absent.jar\n")
    with pytest.raises(ToolchainError, match=rf"absent\.jar, {jar.name}, surplus\.jar"):
        verify_jars(fetched, listing)


def users_pulumi(folder: Path, version: str, *, language_host: bool = True) -> Path:
    folder.mkdir()
    cli = folder / "pulumi"
    cli.write_text(f"#!/bin/sh\necho v{version}\n")
    cli.chmod(0o755)
    if language_host:
        (folder / "pulumi-language-python").touch()
    return cli


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a PATH entry that does not exist yet, and a Pulumi home with the Kafka plugin."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PULUMI_HOME", str(tmp_path / "home"))
    monkeypatch.setenv(pulumi_release.VARIABLE, "")
    plugin = tmp_path / "home" / "plugins" / _PLUGIN / "pulumi-resource-kafka"
    plugin.parent.mkdir(parents=True)
    plugin.write_text("the user's own")
    return tmp_path


def test_a_compatible_pulumi_on_path_and_an_installed_plugin_are_used(bare: Path) -> None:
    cli = users_pulumi(bare / "bin", "3.260.1")
    toolchain = ensure_pulumi(Cache(bare / "cache"))
    assert toolchain.cli == cli
    assert (toolchain.home / "plugins" / _PLUGIN / "pulumi-resource-kafka").read_text() == "the user's own"
    assert toolchain.home.is_relative_to(bare / "cache"), "the user's Pulumi home stays as it is"
    assert toolchain.login_home == bare / "home"


def test_a_users_pulumi_finds_the_plugin_of_the_cache_on_the_path(
    bare: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    users_pulumi(bare / "bin", "3.260.1")
    monkeypatch.setenv("HEADWATER_CACHE", str(bare / "cache"))
    home = ensure_pulumi().home
    assert shell_exports() == (), "the user's Pulumi has the plugin"
    shutil.rmtree(bare / "home")
    assert shell_exports() == (f"export PATH={home}/plugins/{_PLUGIN}:{bare}/bin",)


def test_logins_in_the_pulumi_of_the_cache_outlive_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    home = tmp_path / "state" / "headwater" / "pulumi"
    for version in ("old", "new"):
        cached = tmp_path / "cache" / version
        (cached / "plugins").mkdir(parents=True)
        toolchain = PulumiToolchain(cached / "bin" / "pulumi", cached)
        monkeypatch.setattr(pulumi_cli, "ensure_pulumi", lambda toolchain=toolchain: toolchain)
        assert f"export PULUMI_HOME={home}" in shell_exports()
        assert toolchain.login_home == home
        assert (home / "plugins").readlink() == cached / "plugins"
        (home / "credentials.json").touch()
        shutil.rmtree(tmp_path / "cache")
    assert (home / "credentials.json").exists()


def test_a_state_folder_that_cannot_be_written_does_not_end_a_finished_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is written by `headwater toolchain env`, which a hint names."""
    (tmp_path / "state").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("PULUMI_HOME", raising=False)
    toolchain = PulumiToolchain(tmp_path / "bin" / "pulumi", tmp_path)
    monkeypatch.setattr(pulumi_cli, "ensure_pulumi", lambda *_, **__: toolchain)
    monkeypatch.setattr(pulumi_cli, "needed_programs", lambda *_: ())
    assert needs_exports()
    done = CliRunner().invoke(main, ["toolchain", "pulumi"])
    assert (done.exit_code, done.output.splitlines()[0]) == (0, "Complete.")
    assert 'eval "$(headwater toolchain env)"' in done.output
    with pytest.raises(ToolchainError, match="Set XDG_STATE_HOME to a folder that this user can write"):
        shell_exports()


@pytest.mark.parametrize(
    ("version", "language_host"), [("3.100.0", True), ("4.0.0", True), ("3.260.1", False)]
)
def test_an_incompatible_pulumi_on_path_is_ignored(bare: Path, version: str, *, language_host: bool) -> None:
    users_pulumi(bare / "bin", version, language_host=language_host)
    needed = needed_programs(Cache(bare / "cache"), Progress())
    assert [program.title for program in needed] == ["Go"]


def test_the_environment_to_run_pulumi_in(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    (shared / "plugins").mkdir(parents=True)
    toolchain = PulumiToolchain(tmp_path / "bin" / "pulumi", shared)
    environment = toolchain.environment({"PATH": "/usr/bin", "KEPT": "yes"}, home=tmp_path / "own")
    assert environment["PATH"] == f"{sysconfig.get_path('scripts')}:{tmp_path}/bin:/usr/bin"
    assert environment["KEPT"] == "yes"
    assert environment["PULUMI_HOME"] == str(tmp_path / "own")
    assert (tmp_path / "own" / "plugins").resolve() == shared / "plugins"
    assert toolchain.environment({})["PULUMI_HOME"] == str(shared)
    assert environment["PULUMI_SKIP_UPDATE_CHECK"] == environment["PULUMI_IGNORE_AMBIENT_PLUGINS"] == "true"
