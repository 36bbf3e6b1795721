"""Python's garbage collector in a worker process: paused while a batch is processed.

A batch creates hundreds of thousands of tuples without reference cycles, and releases them together; the
collector would inspect them again and again. PySpark also runs a full collection after each Spark task.
`gc.freeze` excludes the objects that the process keeps, mainly modules, from these collections.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_frozen: set[int] = set()
"""The process whose objects are frozen: workers are forked, and a child has to freeze its own."""
_pausing: set[object] = set()
"""A key for each block that is executed now."""
_lock = Lock()


@contextmanager
def paused_gc() -> Iterator[None]:
    """Disable garbage collection while any thread is in such a block; after the first one, freeze objects."""
    key = object()
    with _lock:
        _pausing.add(key)
        gc.disable()
    try:
        yield
    finally:
        with _lock:
            _pausing.remove(key)
            if not _pausing:
                _freeze_once()
                gc.enable()


def _freeze_once() -> None:
    if os.getpid() not in _frozen:
        _frozen.add(os.getpid())
        gc.collect()
        gc.freeze()
