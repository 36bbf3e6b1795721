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
    """`variables` go on top of the toolchain's: at least the backend and the passphrase."""

    folder: Path
    toolchain: PulumiToolchain
    variables: Mapping[str, str] = attrs.field(factory=dict)
    home: Path | None = None
    """The CLI's own notes (selected stacks, credentials); None: where the toolchain keeps them."""

    def run(self, *arguments: str) -> Finished:
        """Run `pulumi` to its end, without colours and without questions."""
        finished = subprocess.run(
            [self.toolchain.cli, *arguments, "--non-interactive", "--color", "never"],
            cwd=self.folder,
            env={**self.toolchain.environment(home=self.home), **self.variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return Finished(finished.returncode, finished.stdout)
