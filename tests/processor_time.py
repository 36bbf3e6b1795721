"""The CPU time of a worker of a test run, with the CPU time of all processes that it has started.

On Linux, each worker gets a control group (cgroup v2). The processes that a member starts are members, too,
and the operating system adds up their CPU time, also of processes that were killed, that still run, or whose
parent has ended. Where the run has no permission to create a group, only the processes count that the worker
has waited for: then tests that kill programs, and tests of daemons, seem to need less CPU time than they do.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Self

import attrs

_TYPE = "cgroup2"
_MEMBERS, _USED = "cgroup.procs", "usage_usec"


@attrs.frozen
class ControlGroup:
    """A control group; `folder` is its folder in the file system of the operating system."""

    folder: Path

    @classmethod
    def create(cls, *names: str) -> Self | None:
        """Create a group below the group of this process, with groups between; None without permission."""
        folder = _own_group()
        if folder is None:
            return None
        try:
            for name in names:
                folder /= name
                folder.mkdir(exist_ok=True)
            group = cls(folder)
            group.used_seconds()
        except (OSError, ValueError):
            return None
        return group

    def add(self, process: int) -> bool:
        """Make a process a member, without its present child processes; return False without permission."""
        try:
            (self.folder / _MEMBERS).write_text(str(process))
        except OSError:
            return False
        return True

    def used_seconds(self) -> float:
        """Return the CPU time of all who are members or were, in the time when they were.

        Raises:
            ValueError: The operating system does not add it up.
        """
        for line in (self.folder / "cpu.stat").read_text().splitlines():
            name, _, value = line.partition(" ")
            if name == _USED:
                return int(value) / 1e6
        raise ValueError(f"{self.folder} has no {_USED}")

    def remove(self) -> None:
        """Remove the group and its groups; processes that still run become members of the group above."""
        for each in (path for path in self.folder.glob("*") if path.is_dir()):
            ControlGroup(each).remove()
        with suppress(OSError):
            for process in (self.folder / _MEMBERS).read_text().split():
                ControlGroup(self.folder.parent).add(int(process))
            self.folder.rmdir()


def used_seconds(group: ControlGroup | None) -> float:
    """Return the CPU time of a group; None: of this process and of the processes that it has waited for."""
    if group is not None:
        return group.used_seconds()
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def _own_group() -> Path | None:
    """Return the folder of the group of this process; None if there are no groups of version 2."""
    with suppress(OSError):
        mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
        root = next((fields[1] for fields in mounts if fields[2] == _TYPE), None)
        groups = (line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines())
        path = next((group for number, _, group in groups if number == "0"), None)
        if root is not None and path is not None:
            return Path(root, path.lstrip("/"))
    return None
