"""Failures of the disk under the local state, in words that name the folder and the cause."""

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import lmdb

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


def _cause(folder: Path, error: Exception) -> str:
    try:
        free = shutil.disk_usage(folder).free
    except OSError as no_folder:
        return str(no_folder)
    if free < _LITTLE_BYTES or (isinstance(error, OSError) and error.errno in _FULL):
        return f"the disk is full ({free // 1024} KiB free)"
    return str(error)
