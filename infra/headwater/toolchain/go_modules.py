"""Build programs from Go modules: each folder is one module, locked by its go.mod and go.sum."""

import json
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

from headwater.toolchain import machine
from headwater.toolchain.cache import Cache, file_contents, fingerprint
from headwater.toolchain.commands import Progress, run_logged

_SOURCE = Path(__file__).parent / "go"


@attrs.frozen(kw_only=True)
class GoModule:
    """A module in a folder of `source`.

    `packages` is the argument of `go install`: `tool` for the tool lines of go.mod, `.` for our own program.
    `duration` is how long a build takes on two processors, with downloads.
    """

    name: str
    title: str
    packages: str
    duration: str
    variables: Mapping[str, str] = attrs.field(factory=dict)
    tags: tuple[str, ...] = ()
    source: Path = _SOURCE

    @property
    def folder(self) -> Path:
        return self.source / self.name

    @property
    def fingerprint(self) -> str:
        sources = sorted(file.name for file in self.folder.iterdir())
        return fingerprint(
            *file_contents(self.folder, sources),
            self.packages,
            repr(sorted(self.variables.items())),
            *self.tags,
        )

    def build(self, into: Path, cache: Cache, progress: Progress) -> None:
        """Install the module's programs in `into`; raises `ToolchainError`."""
        go = machine.require_programs([machine.GO])[machine.GO]
        link = ["-s", "-w", *(f"-X {variable}={value}" for variable, value in self.variables.items())]
        tags = [f"-tags={','.join(self.tags)}"] if self.tags else []
        with progress.step(f"{self.title}: building from Go modules", expected=self.duration) as show:
            run_logged(
                [go, "install", "-trimpath", *tags, f"-ldflags={' '.join(link)}", self.packages],
                folder=self.folder,
                log=cache.root / "logs" / f"go-{self.name}.log",
                environment=_go_environment(GOBIN=str(into)),
                show=show,
                failure=f"{self.title} could not be built",
            )

    def source_of(self, module: str) -> Path:
        """Return the folder of a required module; download it first if necessary."""
        go = machine.require_programs([machine.GO])[machine.GO]
        downloaded = subprocess.run(
            [go, "mod", "download", "-json", module],
            cwd=self.folder,
            env=_go_environment(),
            capture_output=True,
            text=True,
            check=True,
        )
        return Path(json.loads(downloaded.stdout)["Dir"])


def _go_environment(**own: str) -> dict[str, str]:
    # Keep the user's proxies and caches; drop what would build for another machine or require a C compiler.
    inherited = {key: value for key, value in os.environ.items() if key not in {"GOOS", "GOARCH", "GOWORK"}}
    return {**inherited, "CGO_ENABLED": "0", "GOWORK": "off", **own}
