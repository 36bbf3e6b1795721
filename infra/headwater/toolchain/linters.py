"""Programs that check alert rules and workflows: promtool and actionlint, on PATH or built from `go/`."""

from pathlib import Path

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache
from headwater.toolchain.commands import Progress
from headwater.toolchain.go_modules import GoModule

PROMETHEUS_VERSION = "3.11.3"
_ON_PATH = machine.Program(
    title="promtool",
    executable="promtool",
    version_command=("--version",),
    version_pattern=r"version (\d+\.\d+\.\d+)",
    minimum=(3, 0),
    purpose="checks the alert rules",
    remedies=("https://prometheus.io/download",),
)
_PROMTOOL = GoModule(
    name="promtool",
    title=f"promtool {PROMETHEUS_VERSION}",
    packages="tool",
    duration="4 minutes",
    tags=("remove_all_sd",),  # the service discovery libraries of cloud providers are most of Prometheus
)


def ensure_promtool(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the program, and build it on first use; raises `ToolchainError` if Go is not installed."""
    found = machine.inspect(_ON_PATH)
    if found.executable is not None and found.sufficient:
        return found.executable
    cache = cache or Cache()

    def build(folder: Path, progress: Progress) -> None:
        _PROMTOOL.build(folder, cache, progress)

    entry = f"promtool-{PROMETHEUS_VERSION}-{_PROMTOOL.fingerprint}"
    return cache.ensure(entry, build, progress or Progress()) / "promtool"


ACTIONLINT_VERSION = "1.7.12"
_ACTIONLINT = GoModule(
    name="actionlint", title=f"actionlint {ACTIONLINT_VERSION}", packages="tool", duration="half a minute"
)


def ensure_actionlint(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the program, and build it on first use; raises `ToolchainError` if Go is not installed."""
    cache = cache or Cache()

    def build(folder: Path, progress: Progress) -> None:
        _ACTIONLINT.build(folder, cache, progress)

    entry = f"actionlint-{ACTIONLINT_VERSION}-{_ACTIONLINT.fingerprint}"
    return cache.ensure(entry, build, progress or Progress()) / "actionlint"
