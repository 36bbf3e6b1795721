"""Python's garbage collector in a worker process: paused while a batch is processed.

A batch creates hundreds of thousands of tuples without reference cycles, and releases them together; the
collector would inspect them again and again. PySpark also runs a full collection after each Spark task.
`gc.freeze` excludes the objects that the process keeps, mainly modules, from these collections.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_frozen: set[int] = set()
"""The process whose objects are frozen: workers are forked, and a child has to freeze its own."""


@contextmanager
def paused_gc() -> Iterator[None]:
    """Disable garbage collection in the block; the first time in a process, freeze its objects afterwards."""
    gc.disable()
    try:
        yield
    finally:
        if os.getpid() not in _frozen:
            _frozen.add(os.getpid())
            gc.collect()
            gc.freeze()
        gc.enable()
