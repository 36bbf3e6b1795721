"""Read files that options and settings name, standard input and pipes, within limits.

A wrong name, such as a device, or a dump of a database, must not use up the memory of a machine. Topology
documents and policies have their own rules (`headwater.spec.files`): they must be regular files.
"""

import errno
import sys
from pathlib import Path
from typing import IO

LARGEST_SETTINGS = 5 << 20
"""Bytes of settings of a client, of keys and of certificates: no cluster needs a thousandth of it."""
LARGEST_TEXT = 32 << 20
"""Bytes of a log with the text of `Topology#describe()`: of UTF-8, four bytes are a character at most."""
LARGEST_REPORT = 64 << 20
"""Bytes of a manifest, or of what another command of Headwater has printed as JSON."""
LARGEST_STATE = 512 << 20
"""Bytes of an exported state: with 20,000 topics it has about 60 MiB."""
STANDARD_INPUT = "-"
_CHUNK = 1 << 20


def read_file(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file or pipe.

    Raises:
        OSError: It cannot be read, or it is larger than `most_bytes`; `strerror` is the reason.
    """
    with path.open("rb") as stream:
        return read_stream(stream, most_bytes)


def read_input(path: Path, most_bytes: int) -> bytes:
    """Return the content of a file or, for `-`, of standard input; raises as `read_file` does."""
    if str(path) == STANDARD_INPUT:
        return read_stream(sys.stdin.buffer, most_bytes)
    return read_file(path, most_bytes)


def read_text(path: Path, most_bytes: int) -> str:
    """Return the text of a file in UTF-8.

    Raises:
        OSError: As `read_file` does.
        UnicodeDecodeError: It is not UTF-8 text.
    """
    return read_file(path, most_bytes).decode("utf-8")


def read_stream(stream: IO[bytes], most_bytes: int) -> bytes:
    """Return what a stream of bytes still has; raises `OSError` if this is more than `most_bytes`."""
    chunks: list[bytes] = []
    left = most_bytes + 1
    while left and (chunk := stream.read(min(left, _CHUNK))):
        chunks.append(chunk)
        left -= len(chunk)
    if not left:
        raise OSError(errno.EFBIG, f"it is larger than {most_bytes >> 20} MiB")
    return b"".join(chunks)
