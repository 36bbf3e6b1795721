"""A folder with a Pulumi project, and the Pulumi CLI that runs in it."""

from collections.abc import Mapping
from pathlib import Path

import attrs

from headwater.toolchain import PulumiToolchain
from headwater.toolchain.sessions import run_in_session


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
