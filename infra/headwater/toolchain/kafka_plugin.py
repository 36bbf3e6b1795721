"""The Kafka provider plugin: the user's own, the published one if its hash is known, or a built one."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress
from headwater.toolchain.go_modules import GoModule
from headwater.toolchain.pulumi_release import given_hash

PLUGIN_VERSION = "3.13.3"
_NAME = f"resource-kafka-v{PLUGIN_VERSION}"
_EXECUTABLE = "pulumi-resource-kafka"
_BRIDGE = GoModule(
    name="provider",
    title=f"Pulumi's Kafka plugin {PLUGIN_VERSION}",
    packages=".",
    duration="90 seconds",
    variables={"main.version": PLUGIN_VERSION},
)
_DOWNLOAD_SECONDS = 120
HASH_VARIABLE = "HEADWATER_KAFKA_PLUGIN_SHA256"


def ensure_home(cli: Path, cache: Cache, progress: Progress) -> Path:
    """Return a Pulumi home with the plugin; raises `ToolchainError` if it cannot be built either."""

    def fill(home: Path, progress: Progress) -> None:
        if (own := plugin_folder(users_home())).is_dir():
            shutil.copytree(own, plugin_folder(home))
        elif reason := _download_plugin(cli, home, progress):
            progress.write_line(f"{_BRIDGE.title}: not downloaded: {reason}")
            _build_plugin(cli, home, cache, progress)

    return cache.ensure(_cache_entry(), fill, progress)


def find_plugin() -> Path | None:
    """Return the folder of the installed plugin: the user's own, or the folder of the cache, or None."""
    home = find_home(Cache())
    folders = [plugin_folder(each) for each in (users_home(), home) if each]
    return next((folder for folder in folders if folder.is_dir()), None)


def is_visible() -> bool:
    """Return whether the user's own Pulumi finds the plugin: in its home, or on PATH."""
    return plugin_folder(users_home()).is_dir() or shutil.which(_EXECUTABLE) is not None


def plugin_folder(home: Path) -> Path:
    """Return the folder of the plugin in a Pulumi home."""
    return home / "plugins" / _NAME


def find_home(cache: Cache) -> Path | None:
    """Return the Pulumi home of the cache, which has the plugin; None if there is none yet."""
    return cache.find(_cache_entry())


def _cache_entry() -> str:
    return f"pulumi-home-{PLUGIN_VERSION}-{fingerprint(_BRIDGE.fingerprint)}"


def users_home() -> Path:
    """Return the Pulumi home of the user's own commands."""
    return Path(os.environ.get("PULUMI_HOME") or "~/.pulumi").expanduser()


def _download_plugin(cli: Path, home: Path, progress: Progress) -> str:
    """Install the published plugin in `home`; return why it failed, or nothing.

    The CLI compares the archive with the hash. Without one it would run whatever the server sends.
    """
    expected = given_hash(HASH_VARIABLE)
    if expected is None:
        return f"no hash of the published plugin is known; {HASH_VARIABLE} is its SHA-256"
    with progress.step(f"{_BRIDGE.title}: downloading", expected="10 seconds"):
        try:
            _install_plugin(cli, home, "--checksum", expected, timeout=_DOWNLOAD_SECONDS)
        except subprocess.CalledProcessError as error:
            reason = _last_line(error.stderr) or f"exit code {error.returncode}"
        except subprocess.TimeoutExpired:
            reason = f"no answer within {_DOWNLOAD_SECONDS} s"
        else:
            return ""
        shutil.rmtree(home / "plugins", ignore_errors=True)
        return reason


def _last_line(output: bytes) -> str:
    return next((line for line in reversed(output.decode(errors="replace").splitlines()) if line.strip()), "")


def _build_plugin(cli: Path, home: Path, cache: Cache, progress: Progress) -> None:
    with tempfile.TemporaryDirectory() as built:
        _BRIDGE.build(Path(built), cache, progress)
        # `go install` names a program after its module.
        plugin = Path(built, "provider").rename(Path(built, _EXECUTABLE))
        _install_plugin(cli, home, "--file", plugin)


def _install_plugin(cli: Path, home: Path, *options: str | Path, timeout: float | None = None) -> None:
    subprocess.run(
        [cli, "plugin", "install", "resource", "kafka", PLUGIN_VERSION, *options],
        env={**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"},
        capture_output=True,
        timeout=timeout,
        check=True,
    )
