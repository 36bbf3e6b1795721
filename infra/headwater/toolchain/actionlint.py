"""actionlint, which checks workflows of GitHub Actions: built from `go/actionlint`."""

from pathlib import Path

from headwater.toolchain.cache import Cache
from headwater.toolchain.go_modules import GoModule
from headwater.toolchain.progress import Progress

ACTIONLINT_VERSION = "1.7.12"
_MODULE = GoModule(
    name="actionlint", title=f"actionlint {ACTIONLINT_VERSION}", packages="tool", duration="half a minute"
)


def ensure_actionlint(cache: Cache | None = None, progress: Progress | None = None) -> Path:
    """Return the program, and build it on first use; raises `ToolchainError` if Go is not installed."""
    cache = cache or Cache()

    def build(folder: Path, progress: Progress) -> None:
        _MODULE.build(folder, cache, progress)

    entry = f"actionlint-{ACTIONLINT_VERSION}-{_MODULE.fingerprint}"
    return cache.ensure(entry, build, progress or Progress()) / "actionlint"
