"""The Pulumi CLI with its language host and the provider plugin, and the project folders in which it runs."""

import os
import secrets
import shutil
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import attrs

from headwater.toolchain import kafka_plugin, machine
from headwater.toolchain.cache import Cache, fingerprint
from headwater.toolchain.commands import Progress
from headwater.toolchain.go_modules import GoModule
from headwater.toolchain.pulumi_release import download_release, release_entry
from headwater.toolchain.sessions import run_in_session

CLI_VERSION = "3.250.0"
_BELOW = (4,)

_ON_PATH = machine.Program(
    title="Pulumi",
    executable="pulumi",
    version_command=("version",),
    version_pattern=r"v(\d+\.\d+\.\d+)",
    minimum=(3, 250),
    purpose="previews and applies plans",
    remedies=("https://www.pulumi.com/docs/install",),
)
_CLI = GoModule(
    name="cli",
    title=f"Pulumi CLI {CLI_VERSION}",
    packages="tool",
    duration="4 minutes",
    variables={"github.com/pulumi/pulumi/sdk/v3/go/common/version.Version": f"v{CLI_VERSION}"},
)
_LANGUAGE_HOST = GoModule(
    name="language", title="Pulumi's Python language host", packages="tool", duration="20 seconds"
)
_SDK_MODULE = "github.com/pulumi/pulumi/sdk/v3"
_EXECUTOR = "pulumi-language-python-exec"


@attrs.frozen
class PulumiToolchain:
    """The Pulumi CLI to run, and a Pulumi home of Headwater that holds the Kafka plugin."""

    cli: Path
    home: Path
    is_users: bool = False
    """Whether the CLI is the user's own, found on PATH."""

    @property
    def login_home(self) -> Path:
        """The Pulumi home in which the user's `pulumi login` stores its credentials."""
        is_chosen = self.is_users or "PULUMI_HOME" in os.environ
        return kafka_plugin.users_home() if is_chosen else own_login_home()

    def environment(
        self, base: Mapping[str, str] | None = None, *, home: Path | None = None
    ) -> dict[str, str]:
        """Return the variables to run the CLI with, on top of `base` (default: variables of this process).

        The caller sets backend and passphrase. `home` is another folder for the CLI's own files (selected
        stacks, credentials); it gets the same plugins.
        """
        if home is not None:
            self._link_plugins(home)
        return self.variables(base, home=home)

    def variables(self, base: Mapping[str, str] | None = None, *, home: Path | None = None) -> dict[str, str]:
        """Return the variables as `environment` does, without writing to `home`."""
        base = os.environ if base is None else base
        # The language host runs the first `python3` on PATH, whatever virtual environment the project names.
        path = [str(Path(sys.prefix) / "bin"), str(self.cli.parent), base.get("PATH", os.defpath)]
        return {
            **base,
            "PATH": os.pathsep.join(path),
            "PULUMI_HOME": str(home or self.home),
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "true",
            "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION": "true",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
        }

    def _link_plugins(self, home: Path) -> None:
        """Let `home` have the plugins, unless it has a folder of its own."""
        plugins, target = home / "plugins", self.home / "plugins"
        if plugins.is_symlink():
            if plugins.readlink() == target:
                return
        elif plugins.exists():
            return
        home.mkdir(parents=True, exist_ok=True)
        link = home / f".plugins-{os.getpid()}-{secrets.token_hex(4)}"
        link.symlink_to(target, target_is_directory=True)
        link.replace(plugins)  # other processes may do the same


def own_login_home() -> Path:
    """Return the Pulumi home of shells that run Headwater's Pulumi: no cache, because it has credentials."""
    return Path(os.environ.get("XDG_STATE_HOME") or "~/.local/state").expanduser() / "headwater" / "pulumi"


def file_backend(folder: Path) -> str:
    """Return the URL of a Pulumi backend in a folder that exists.

    Without `metadata=skip` Pulumi writes a file `.attrs` next to each state file, in place. If it is killed
    then, this file is empty, and the state cannot be read any more ("failed to load checkpoint: EOF").
    """
    return f"file://{folder}?metadata=skip"


def needed_programs(cache: Cache, progress: Progress) -> tuple[machine.Program, ...]:
    """Return the programs that are needed for a build; downloads Pulumi's release first where possible."""
    return () if _compatible_on_path() or _available_folder(cache, progress) else (machine.GO,)


def ensure_pulumi(
    cache: Cache | None = None, progress: Progress | None = None, *, is_built: bool = False
) -> PulumiToolchain:
    """Return Pulumi, downloaded or built on first use; `is_built` says that a download has failed already.

    Raises:
        ToolchainError: It cannot be downloaded, and a program that is needed to build it is missing; or the
            download or the build failed.
    """
    cache, progress = cache or Cache(), progress or Progress()
    users = _compatible_on_path()
    downloaded = None if users or is_built else _available_folder(cache, progress)
    folder = None if users else downloaded or cache.ensure(_cache_entry(), _build_cli(cache), progress)
    cli = folder / "pulumi" if folder else users
    assert cli is not None  # noqa: S101 - one of the two
    return PulumiToolchain(cli, kafka_plugin.ensure_home(cli, cache, progress), is_users=users is not None)


def find_pulumi(cache: Cache | None = None) -> PulumiToolchain | None:
    """Return what `ensure_pulumi` would use without a download or a build, None if there is no CLI."""
    cache = cache or Cache()
    users = _compatible_on_path()
    folder = cache.find(_cache_entry()) or cache.find(release_entry(CLI_VERSION))
    cli = users or (folder / "pulumi" if folder else None)
    home = kafka_plugin.find_home(cache) or kafka_plugin.users_home()
    return PulumiToolchain(cli, home, is_users=users is not None) if cli else None


def pulumi_version(cli: Path) -> tuple[int, ...] | None:
    """Return the version that the CLI prints, None if it prints none."""
    return _ON_PATH.version(cli)


def _available_folder(cache: Cache, progress: Progress) -> Path | None:
    """Return a folder with Pulumi that needs no build: found in the cache, or downloaded."""
    return cache.find(_cache_entry()) or download_release(CLI_VERSION, cache, progress)


@attrs.frozen
class Finished:
    """The exit code of a command, and its standard output and error in order."""

    code: int
    text: str


@attrs.frozen
class PulumiProject:
    """A project folder with its environment.

    `variables` override the toolchain's and contain at least the backend and the passphrase. The toolchain's
    override `base`, which is the environment of this process if None.
    """

    folder: Path
    toolchain: PulumiToolchain
    variables: Mapping[str, str] = attrs.field(factory=dict)
    base: Mapping[str, str] | None = None
    home: Path | None = None
    """The folder of the CLI's own files (selected stack, credentials); None: the toolchain's folder."""

    @property
    def environment(self) -> dict[str, str]:
        return {**self.toolchain.environment(self.base, home=self.home), **self.variables}

    def run(self, *arguments: str) -> Finished:
        """Run `pulumi` without colors and prompts, and wait for it. None of its processes remains."""
        finished = run_in_session(
            [self.toolchain.cli, *arguments, "--non-interactive", "--color", "never"],
            folder=self.folder,
            environment=self.environment,
            is_error_in_output=True,
        )
        return Finished(finished.code, finished.output)


def _compatible_on_path() -> Path | None:
    """Return the user's own CLI if it is new enough and has a Python language host."""
    found = machine.inspect_program(_ON_PATH)
    if found.executable is None or not found.sufficient or found.version is None or found.version >= _BELOW:
        return None
    host = found.executable.resolve().parent / "pulumi-language-python"
    return found.executable if host.exists() else None


def _cache_entry() -> str:
    return f"pulumi-{CLI_VERSION}-{fingerprint(_CLI.fingerprint, _LANGUAGE_HOST.fingerprint)}"


def _build_cli(cache: Cache) -> Callable[[Path, Progress], None]:
    def build(folder: Path, progress: Progress) -> None:
        _CLI.build(folder, cache, progress)
        _LANGUAGE_HOST.build(folder, cache, progress)
        # The newest host that can be built alone is older than the CLI; its executor must fit the Python SDK.
        shutil.copy(_CLI.source_of(_SDK_MODULE) / "python" / "cmd" / _EXECUTOR, folder)
        (folder / _EXECUTOR).chmod(0o755)

    return build
