"""How many workers a test run has: `python -m tests.workers PER_PROCESSOR` prints it for this machine."""

import os
import sys

_GIB = 1024**3
_BYTES_OF_A_WORKER = 3 * _GIB
"""What a test takes at most: a broker, and the driver, executors and Python workers of a Spark cluster."""


def count_workers(per_processor: int, processors: int, memory: int) -> int:
    """Return the number of workers; `memory` is in bytes, and limits it: tests do not wait for memory."""
    return max(1, min(per_processor * processors, memory // _BYTES_OF_A_WORKER))


if __name__ == "__main__":
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    sys.stdout.write(f"{count_workers(int(sys.argv[1]), os.cpu_count() or 1, pages)}\n")
