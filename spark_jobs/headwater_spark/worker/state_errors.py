"""Failures of the disk under the local state, in words that name the folder and the cause."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

from headwater_spark.worker.private_folders import UnsafeFolderError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_LITTLE_BYTES = 1024 * 1024


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
            f"the local state in {folder} cannot be written: {_cause(folder, error)}"
        ) from error


def is_disk_full(folder: Path, error: Exception) -> bool:
    """Return whether a failure is that of a full disk, whatever LMDB calls it."""
    if isinstance(error, lmdb.DiskError) or (isinstance(error, OSError) and error.errno in _FULL):
        return True
    try:
        return _free_bytes(folder) < _LITTLE_BYTES
    except OSError:
        return False


def _cause(folder: Path, error: Exception) -> str:
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
