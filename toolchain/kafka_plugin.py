"""The Kafka provider plugin: the user's own, the published one, or one built from `go/provider`."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from toolchain.cache import Cache, fingerprint
from toolchain.go_modules import GoModule
from toolchain.progress import Progress

PLUGIN_VERSION = "3.13.3"
_NAME = f"resource-kafka-v{PLUGIN_VERSION}"
_BRIDGE = GoModule(
    name="provider",
    title=f"Pulumi's Kafka plugin {PLUGIN_VERSION}",
    packages=".",
    duration="90 seconds",
    variables={"main.version": PLUGIN_VERSION},
)
_DOWNLOAD_SECONDS = 120


def ensure_home(cli: Path, cache: Cache, progress: Progress) -> Path:
    """Return a Pulumi home with the plugin; raises `ToolchainError` if it cannot be built either."""

    def fill(home: Path, progress: Progress) -> None:
        if (own := users_home() / "plugins" / _NAME).is_dir():
            shutil.copytree(own, home / "plugins" / _NAME)
        elif not _download(cli, home, progress):
            progress.note(f"{_BRIDGE.title}: download failed")
            _build(cli, home, cache, progress)

    return cache.ensure(_entry(), fill, progress)


def find_plugin(cache: Cache | None = None) -> Path | None:
    """Return the folder of the installed plugin: the user's own, or that of the cache, or None."""
    home = find_home(cache or Cache())
    folders = [users_home() / "plugins" / _NAME, *([home / "plugins" / _NAME] if home else [])]
    return next((folder for folder in folders if folder.is_dir()), None)


def find_home(cache: Cache) -> Path | None:
    """Return the Pulumi home of the cache, which has the plugin; None if there is none yet."""
    return cache.find(_entry())


def _entry() -> str:
    return f"pulumi-home-{PLUGIN_VERSION}-{fingerprint(_BRIDGE.fingerprint)}"


def users_home() -> Path:
    """Return the Pulumi home of the user's own commands."""
    return Path(os.environ.get("PULUMI_HOME") or "~/.pulumi").expanduser()


def _download(cli: Path, home: Path, progress: Progress) -> bool:
    with progress.step(f"{_BRIDGE.title}: downloading", expected="10 seconds"):
        try:
            _install(cli, home, timeout=_DOWNLOAD_SECONDS)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            shutil.rmtree(home / "plugins", ignore_errors=True)
            return False
        return True


def _build(cli: Path, home: Path, cache: Cache, progress: Progress) -> None:
    with tempfile.TemporaryDirectory() as built:
        _BRIDGE.build(Path(built), cache, progress)
        # `go install` names a program after its module.
        plugin = Path(built, "provider").rename(Path(built, "pulumi-resource-kafka"))
        _install(cli, home, "--file", plugin)


def _install(cli: Path, home: Path, *options: str | Path, timeout: float | None = None) -> None:
    subprocess.run(
        [cli, "plugin", "install", "resource", "kafka", PLUGIN_VERSION, *options],
        env={**os.environ, "PULUMI_HOME": str(home), "PULUMI_SKIP_UPDATE_CHECK": "true"},
        capture_output=True,
        timeout=timeout,
        check=True,
    )
