"""Groups of processes whose CPU time the kernel limits: cgroups of version 1 or 2."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from headwater.toolchain.broker.readiness import until

_PERIOD_US = 20_000
"""Short: a process that has used its time waits for at most this long."""
_REMOVE_SECONDS = 20.0
_VERSION_1, _VERSION_2 = Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup")


class CpuLimit:
    """A cgroup; processes that are started in it, and their children, share its CPU time.

    Raises:
        OSError: This system has no controller of CPU time, or this process may not use it.
    """

    def __init__(self, name: str) -> None:
        self._is_version_1 = (_VERSION_1 / "cpu.cfs_quota_us").exists() or not (
            _VERSION_2 / "cgroup.controllers"
        ).exists()
        root = _VERSION_1 if self._is_version_1 else _VERSION_2
        if not self._is_version_1:
            (root / "cgroup.subtree_control").write_text("+cpu")
        self._folder = root / f"headwater-{os.getpid()}-{name}"
        self._folder.mkdir()

    def set(self, cores: float | None) -> None:
        """Limit the processes to so many cores together; None: no limit."""
        quota = None if cores is None else int(cores * _PERIOD_US)
        if self._is_version_1:
            (self._folder / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (self._folder / "cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))
        else:
            limit = "max" if quota is None else str(quota)
            (self._folder / "cpu.max").write_text(f"{limit} {_PERIOD_US}")

    def command(self, command: Sequence[str | Path]) -> list[str | Path]:
        """Return a command that runs in the group."""
        script = f'echo 0 > {self._folder / "cgroup.procs"} && exec "$@"'
        return ["sh", "-c", script, "sh", *command]

    def close(self) -> None:
        """Remove the group, after its processes have ended."""

        def is_removed() -> bool:
            with suppress(OSError):
                self._folder.rmdir()
            return not self._folder.exists()

        until(is_removed, _REMOVE_SECONDS)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
