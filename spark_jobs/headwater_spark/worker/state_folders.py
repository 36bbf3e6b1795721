"""Folders of local state, leases and checkpoints: only this user may change them, and disks that fail.

The runtime unmarshals what it finds in them, and sends records and credentials to the sockets that leases
name. So another user who can write to such a folder, or replace it, could run code as this user. Kafka
Streams sets the permissions of its state directory for the same reason (`StateDirectory`).
"""

import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

_PRIVATE = 0o700
_SUPERUSER = 0
TRUSTED = "HEADWATER_TRUST_FOLDERS"
"""Environment variable; 1 = accept folders that others can change, as in a container of one user."""
_FULL = (errno.ENOSPC, errno.EDQUOT)
_LITTLE_BYTES = 1024 * 1024


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


class StateNotWrittenError(Exception):
    """The local state cannot be written. The batch is not committed; the next attempt processes it again."""


@contextmanager
def named_disk_failures(folder: Path) -> Iterator[None]:
    """Raise `StateNotWrittenError` for failures of the operating system and of LMDB in the block.

    LMDB reports a write that was cut short by a full disk as an input/output error.
    """
    try:
        yield
    except lmdb.MapFullError:
        raise
    except (lmdb.Error, OSError) as error:
        raise StateNotWrittenError(
            f"the local state in {folder} cannot be written: {_describe_cause(folder, error)}"
        ) from error


def is_disk_full(folder: Path, error: Exception) -> bool:
    """Return whether a failure is a full disk, whatever LMDB calls it."""
    if isinstance(error, lmdb.DiskError) or (isinstance(error, OSError) and error.errno in _FULL):
        return True
    try:
        return _free_bytes(folder) < _LITTLE_BYTES
    except OSError:
        return False


def _describe_cause(folder: Path, error: Exception) -> str:
    if isinstance(error, UnsafeFolderError):
        return str(error.strerror)
    if not is_disk_full(folder, error):
        return str(error)
    free = _free_bytes(folder) // 1024
    return f"the disk is full ({free} KiB free). Free space there, or choose another disk by --state-dir"


def _free_bytes(folder: Path) -> int:
    """Return the free bytes on the disk of a folder that may be missing."""
    present = next(each for each in (folder, *folder.parents) if each.exists())
    return shutil.disk_usage(present).free
