"""Settings of Python's interpreter while a thread of the driver reads and writes many records."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS = 0.0005


@contextmanager
def short_switch_interval() -> Iterator[None]:
    """Let threads that wait for answers run soon, although another one computes inside the block.

    A batch has hundreds of requests to Spark's JVM. After each answer, its thread waits for Python's lock as
    long as the switch interval: by default 5 ms, so seconds in total.
    """
    before = sys.getswitchinterval()
    sys.setswitchinterval(_SECONDS)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


@contextmanager
def cheap_collections() -> Iterator[None]:
    """Exclude the objects that exist now from garbage collections inside the block.

    For each 100,000 records that are read, Python inspects all objects of the process. That takes 0.2 s,
    longer than to read them, and no other thread runs meanwhile.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
