"""The programs that must be installed on this machine, and how to install those that are missing."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import attrs

from headwater.toolchain.commands import ToolchainError


@attrs.frozen(kw_only=True)
class Program:
    """A program that this machine should have, and how to find its version.

    `version_command` prints the version; `version_pattern` finds it in either output stream.
    """

    title: str
    executable: str
    home_variable: str | None = None
    version_command: tuple[str, ...]
    version_pattern: str
    minimum: tuple[int, ...]
    purpose: str
    remedies: tuple[str, ...]

    def locate(self) -> Path | None:
        """Return the executable, from `home_variable` if that is set, else from PATH."""
        if self.home_variable and (home := os.environ.get(self.home_variable)):
            inside = Path(home, "bin", self.executable)
            if os.access(inside, os.X_OK):
                return inside
        found = shutil.which(self.executable)
        return Path(found) if found else None

    def version(self, executable: Path) -> tuple[int, ...] | None:
        """Return the version that `executable` prints, None if it prints none."""
        try:
            printed = subprocess.run(
                [executable, *self.version_command], capture_output=True, text=True, timeout=60, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        match = re.search(self.version_pattern, printed.stdout + printed.stderr)
        return tuple(int(number) for number in match[1].split(".")) if match else None


JAVA = Program(
    title="Java",
    executable="java",
    home_variable="JAVA_HOME",
    version_command=("-version",),
    version_pattern=r'version "(\d+(?:\.\d+)*)',
    minimum=(17,),
    purpose="runs the Kafka broker",
    remedies=(
        "apt install openjdk-17-jre-headless",
        "dnf install java-17-openjdk-headless",
        "brew install openjdk@17",
        "https://adoptium.net",
    ),
)
MAVEN = Program(
    title="Maven",
    executable="mvn",
    version_command=("-v",),
    version_pattern=r"Apache Maven (\d+(?:\.\d+)*)",
    minimum=(3, 6),
    purpose="downloads the Kafka broker",
    remedies=(
        "apt install maven",
        "dnf install maven",
        "brew install maven",
        "https://maven.apache.org/install.html",
    ),
)
GO = Program(
    title="Go",
    executable="go",
    version_command=("env", "GOVERSION"),
    version_pattern=r"go(\d+(?:\.\d+)*)",
    minimum=(1, 24),
    purpose="builds the Pulumi CLI and its Kafka plugin where they cannot be downloaded",
    remedies=(
        "https://go.dev/dl",
        "brew install go",
        "the Pulumi CLI instead: https://www.pulumi.com/docs/install",
    ),
)
MAKE = Program(
    title="make",
    executable="make",
    version_command=("--version",),
    version_pattern=r"Make (\d+(?:\.\d+)*)",
    minimum=(3, 81),
    purpose="runs `make demo` and `make test`",
    remedies=("apt install make", "dnf install make", "xcode-select --install"),
)


@attrs.frozen
class Finding:
    """The path and version of a program; `executable` or `version` is None if it was not found."""

    program: Program
    executable: Path | None
    version: tuple[int, ...] | None

    @property
    def sufficient(self) -> bool:
        return self.version is not None and self.version >= self.program.minimum

    def describe(self) -> str:
        required = f"{self.program.title} {_dotted_version(self.program.minimum)} or newer"
        if self.sufficient and self.version:
            return f"{self.program.title} {_dotted_version(self.version)} ({self.executable})"
        if self.executable is None:
            state = f"is missing: there is no `{self.program.executable}` on PATH"
        elif self.version is None:
            state = f"is missing: {self.executable} prints no version"
        else:
            state = f"is required: {self.executable} is version {_dotted_version(self.version)}"
        remedies = "\n      or ".join(self.program.remedies)
        return (
            f"{required} {state}.\n    It {self.program.purpose}. Install it by one of\n         {remedies}"
        )


def inspect_program(program: Program) -> Finding:
    """Return where the program is on this machine, and its version."""
    executable = program.locate()
    return Finding(program, executable, program.version(executable) if executable else None)


def require_programs(programs: Iterable[Program]) -> dict[Program, Path]:
    """Return the path of each program; raises `ToolchainError` that names all that are missing or too old."""
    findings = [inspect_program(program) for program in dict.fromkeys(programs)]
    if missing := [finding for finding in findings if not finding.sufficient]:
        raise ToolchainError(
            "\n".join(
                ["Required programs are missing on this machine:", *(f"  {f.describe()}" for f in missing)]
            )
        )
    return {finding.program: finding.executable for finding in findings if finding.executable}


def _dotted_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
