"""The lease of a task on one machine: a locked file in the folder of the application's local state.

It separates the processes that share this folder, and names the owner's socket to them. Processes on other
machines, or with another folder, do not see it: they are separated by `state_proof` and by transactions.
"""

import fcntl
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import attrs

from headwater_spark.worker.state_folders import create_private_folder, named_disk_failures

_closed_in_children: dict[int, Callable[[], None]] = {}
"""File descriptor → how to close it. A lock or a connection ends when no process has its file open."""


def close_in_children(descriptor: int, close: Callable[[], None]) -> None:
    """Call `close` in each child that is forked from now on, until `forget_descriptor`."""
    _closed_in_children[descriptor] = close


def forget_descriptor(descriptor: int) -> None:
    """Forget a descriptor; call it before the descriptor is closed in this process."""
    _closed_in_children.pop(descriptor, None)


def _close_descriptors() -> None:
    for close in _closed_in_children.values():
        with suppress(OSError):
            close()
    _closed_in_children.clear()


# User code may fork. A child that outlives this process would keep its tasks from all others.
os.register_at_fork(after_in_child=_close_descriptors)


@attrs.frozen
class Lease:
    """A task's lease: held until it is released, or until the process dies.

    The file contains the owner's address, for the other processes of the machine.
    """

    _file: int
    owner: str
    """The owner's address."""

    @classmethod
    def try_acquire(cls, folder: Path, task: str, owner: str) -> "Lease | None":
        """Return the lease, or None while another process holds it.

        Raises:
            StateNotWrittenError: The folder cannot be written.
        """
        with named_disk_failures(folder):
            create_private_folder(folder)
            file = os.open(folder / f"{task}.lease", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            close_in_children(file, partial(os.close, file))
            lease = cls(file, owner)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The folder may be deleted at any time: only the file that others find is a lease.
                if lease.is_current(folder, task):
                    os.ftruncate(file, 0)
                    os.pwrite(file, owner.encode(), 0)
                    return lease
            except BlockingIOError:
                pass
            except BaseException:
                lease.close()
                raise
            lease.close()
            return None

    def is_current(self, folder: Path, task: str) -> bool:
        """Return whether other processes see this lease; not if the state folder was deleted meanwhile."""
        try:
            return os.path.samestat(os.fstat(self._file), (folder / f"{task}.lease").stat())
        except FileNotFoundError:
            return False

    @staticmethod
    def owner_of(folder: Path, task: str) -> str:
        """Return the owner's address; empty = no owner. An owner that died may still be named."""
        try:
            return (folder / f"{task}.lease").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def release(self) -> None:
        """Release the lease; its file names no owner any more."""
        try:
            os.ftruncate(self._file, 0)
        finally:
            self.close()

    def close(self) -> None:
        """Release the lease; its file still names the owner."""
        forget_descriptor(self._file)
        os.close(self._file)
