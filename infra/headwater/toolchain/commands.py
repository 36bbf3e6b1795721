"""Run a build tool: write its output to a log, show its last line, raise an error that quotes its failure."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from headwater.toolchain.errors import ToolchainError

_SHOWN_LINES = 20


def run_logged(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str],
    show: Callable[[str], None],
    failure: str,
    folder: Path | None = None,
) -> None:
    """Run `command` in `folder`; raises `ToolchainError` with `failure` and the end of the output."""
    log.parent.mkdir(parents=True, exist_ok=True)
    lines: list[str] = []
    with (
        log.open("w", encoding="utf-8") as written,
        subprocess.Popen(
            command,
            cwd=folder,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process,
    ):
        assert process.stdout is not None  # noqa: S101 - piped above
        for line in process.stdout:
            written.write(line)
            lines = [*lines[1 - _SHOWN_LINES :], line.rstrip()]
            show(lines[-1])
    if process.returncode:
        tail = "\n".join(f"    {line}" for line in lines)
        raise ToolchainError(f"{failure} (exit code {process.returncode}).\n{tail}\n  Full output: {log}")
