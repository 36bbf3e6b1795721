"""Settings of Python's interpreter while many records are processed, read or written.

The garbage collector of a worker process is paused while it processes a batch. A batch creates hundreds of
thousands of tuples without reference cycles, and releases them together; the collector would inspect them
again and again. PySpark also runs a full collection after each Spark task. `gc.freeze` excludes the objects
that the process keeps, mainly modules, from these collections.
"""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_SWITCH_SECONDS = 0.0005
_frozen: set[int] = set()
"""The process whose objects are frozen: workers are forked, and a child has to freeze its own."""
_found_frozen: set[int] = set()
"""The process in which frozen objects of its parent were found."""
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


def _has_frozen_objects() -> bool:
    """Return whether this process or its parent has frozen its objects."""
    process = os.getpid()
    if process in _frozen or process in _found_frozen:
        return True
    # Python counts them one by one: once per process is enough
    if gc.get_freeze_count():
        _found_frozen.add(process)
    return process in _found_frozen


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let threads that wait for answers run soon, although another one computes inside the block.

    A batch has hundreds of requests to Spark's JVM. After each answer, its thread waits for Python's lock as
    long as the switch interval: by default 5 ms, so seconds in total.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def cheap_collections() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collections inside the block.

    For each 100,000 records that are read, Python inspects all objects of the process. That takes 0.2 s,
    longer than to read them, and no other thread runs meanwhile. If the process has frozen objects before, as
    a worker has, most of what exists is excluded already, and nothing changes: Python can only unfreeze all.
    """
    if _has_frozen_objects():
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
