"""Who has a task: one process of a machine at a time."""

import fcntl
import os
from pathlib import Path

import attrs


@attrs.frozen
class Lease:
    """Held until released, or until the process dies. Others read in it how to reach the holder."""

    _file: int

    def release(self) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)


def read_holder(folder: Path, task: str) -> str:
    """Return what the holder wrote; empty = nobody, and what a dead one wrote may still stand there."""
    try:
        return (folder / f"{task}.lease").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


def take(folder: Path, task: str, holder: str) -> Lease:
    """Wait until no other process has the task."""
    folder.mkdir(parents=True, exist_ok=True)
    file = os.open(folder / f"{task}.lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    os.ftruncate(file, 0)
    os.pwrite(file, holder.encode(), 0)
    return Lease(file)
