"""No JVM stays behind when somebody presses Ctrl-C while Spark starts.

PySpark waits for a file from its JVM; interrupted, it takes the file's folder away, and the JVM, which cannot
write it any more, never comes to the point where it watches whether Python still lives.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_TASKS = Path("/proc/self/task")


@contextmanager
def no_orphans() -> Iterator[None]:
    """End the processes that were started within, if that is interrupted. Only Linux tells which they are."""
    before = _children()
    try:
        yield
    except KeyboardInterrupt:
        for process in _children() - before:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)
        raise


def _children() -> set[int]:
    found: set[int] = set()
    for file in _TASKS.glob("*/children"):
        with suppress(OSError):
            found.update(map(int, file.read_text(encoding="ascii").split()))
    return found
