"""Folders that only this user can change: local state, leases, checkpoints.

The runtime unmarshals what it finds in them, and sends records and credentials to the sockets that leases
name. So another user who can write to such a folder, or replace it, could run code as this user. Kafka
Streams sets the permissions of its state directory for the same reason (`StateDirectory`).
"""

import errno
import os
import stat
from pathlib import Path

_PRIVATE = 0o700
_SUPERUSER = 0
TRUSTED = "HEADWATER_TRUST_FOLDERS"
"""Environment variable; 1 = accept folders that others can change, as in a container of one user."""


class UnsafeFolderError(OSError):
    """Another user could change a folder; `strerror` says which folder and why."""

    def __init__(self, reason: str) -> None:
        super().__init__(errno.EPERM, reason)


def create_private_folder(folder: Path) -> None:
    """Create `folder` and its missing parents with mode 0700, and check that only this user can change it.

    An existing folder of this user gets mode 0700.

    Raises:
        UnsafeFolderError: Another user can write to the folder or to a parent, or owns one of them.
        OSError: The folder cannot be created.
    """
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=_PRIVATE, exist_ok=True)
    if os.environ.get(TRUSTED) == "1":
        return
    user = os.geteuid()
    resolved = Path(os.path.realpath(folder))
    for each in (resolved, *resolved.parents):
        reason = _unsafe_because(each, user, is_parent=each != resolved)
        if reason is not None:
            raise UnsafeFolderError(reason)
    if stat.S_IMODE(resolved.stat().st_mode) & 0o077 and resolved.stat().st_uid == user:
        resolved.chmod(_PRIVATE)


def _unsafe_because(folder: Path, user: int, *, is_parent: bool) -> str | None:
    status = folder.stat()
    if status.st_uid not in {user, _SUPERUSER}:
        return f"{folder} belongs to another user (user id {status.st_uid})"
    if not is_parent and status.st_uid != user:
        return f"{folder} belongs to the superuser, not to this user"
    # In a sticky folder such as /tmp, users can neither delete nor rename the files of others.
    if is_parent and status.st_mode & stat.S_ISVTX:
        return None
    if status.st_mode & stat.S_IWOTH:
        return f"all users can write to {folder}"
    # Many systems give each user a group of the same id.
    if status.st_mode & stat.S_IWGRP and status.st_gid != user:
        return f"its group can write to {folder}"
    return None
