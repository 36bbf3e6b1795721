"""The files of a stack in a backend in files: locks, and files that a killed run left empty."""

import json
import os
import socket
from pathlib import Path

import attrs

from headwater.doctor.stack import Lock

_SCHEME = "file://"


@attrs.frozen
class BackendFiles:
    """The files of a stack. `folder` is `.pulumi` in the folder of the backend."""

    folder: Path
    project: str
    stack: str

    @classmethod
    def of(cls, url: str, base: Path, project: str, stack: str) -> "BackendFiles | None":
        """Return the files of a stack, None if the backend is not in files; `base` is for relative paths."""
        if not url.startswith(_SCHEME):
            return None
        path = Path(url.removeprefix(_SCHEME).partition("?")[0]).expanduser()
        return cls((base / path).absolute() / ".pulumi", project, stack.rpartition("/")[2])

    def empty_attributes(self) -> tuple[str, ...]:
        """Return the empty files `.attrs` next to the state of the stack."""
        found = self.folder.joinpath("stacks").rglob(f"{self.stack}.json*.attrs")
        return tuple(str(file) for file in sorted(found) if self._is_own(file.parent) and _is_empty(file))

    def locks(self) -> tuple[Lock, ...]:
        found = sorted(self.folder.joinpath("locks").rglob("*.json"))
        return tuple(
            _lock(file)
            for file in found
            if file.parent.name == self.stack and self._is_own(file.parent.parent)
        )

    def _is_own(self, folder: Path) -> bool:
        """Return whether a folder is that of the project; older backends have no folders of projects."""
        return folder.name in (self.project, "stacks", "locks")


def _is_empty(file: Path) -> bool:
    return file.stat().st_size == 0


def _lock(file: Path) -> Lock:
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        pid, host = int(content["pid"]), str(content["hostname"])
        owner = f"{content['username']}@{host} (process {pid})"
        since = str(content["timestamp"])[:19]
    except (OSError, ValueError, KeyError, TypeError):
        return Lock(file=str(file), owner="an unknown user", since="an unknown time", is_running=None)
    return Lock(file=str(file), owner=owner, since=since, is_running=_is_running(pid, host))


def _is_running(pid: int, host: str) -> bool | None:
    if host != socket.gethostname():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
