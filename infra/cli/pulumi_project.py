"""A folder with a Pulumi project, and the Pulumi command run in it."""

import subprocess
from collections.abc import Mapping
from pathlib import Path

import attrs

from toolchain import PulumiToolchain


@attrs.frozen
class Finished:
    """How a command ended, and what it wrote on both of its outputs, in order."""

    code: int
    text: str


@attrs.frozen
class PulumiProject:
    """`variables` go on top of the toolchain's: at least the backend and the passphrase.

    `base` are the variables below the toolchain's, None = those of this process.
    """

    folder: Path
    toolchain: PulumiToolchain
    variables: Mapping[str, str] = attrs.field(factory=dict)
    base: Mapping[str, str] | None = None
    home: Path | None = None
    """The CLI's own notes (selected stacks, credentials); None: where the toolchain keeps them."""

    @property
    def environment(self) -> dict[str, str]:
        return {**self.toolchain.environment(self.base, home=self.home), **self.variables}

    def run(self, *arguments: str) -> Finished:
        """Run `pulumi` to its end, without colors and without questions."""
        finished = subprocess.run(
            [self.toolchain.cli, *arguments, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Finished(finished.returncode, finished.stdout)
