"""The identity of the file of a checkpoint that this process has locked."""

import hashlib
import os
import socket
from pathlib import Path

import attrs

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@attrs.frozen
class LockedFile:
    """A file, by the numbers of its device and inode. While it is open, no other file has the same numbers.

    Read them from the open file: its path may name another file, for example if the folder was deleted and
    created again.
    """

    device: int
    inode: int

    @classmethod
    def of(cls, descriptor: int) -> "LockedFile":
        """Return the identity of an open file."""
        found = os.fstat(descriptor)
        return cls(found.st_dev, found.st_ino)

    def lock_id(self) -> str:
        """Return the id of the file on this machine, until its next start; empty if it is not known.

        Without the id of the start of the machine it is not known: after a start, or on another machine with
        the same host name, another file may have the same numbers.
        """
        try:
            boot_id = _BOOT_ID.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            return ""
        if not boot_id:
            return ""
        text = f"{boot_id}\n{socket.gethostname()}\n{self.device}\n{self.inode}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]
