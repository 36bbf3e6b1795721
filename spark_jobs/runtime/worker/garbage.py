"""Python's garbage collector in a worker: out of the way while a batch is worked off.

A batch makes hundreds of thousands of tuples that hold no circles and go all at once; the collector would
look through them again and again. And PySpark has it look through everything after each task: what a process
keeps, modules above all, is taken out of its sight once.
"""

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager

_frozen: set[int] = set()
"""The process for which it was done: workers are forked."""


@contextmanager
def no_collection() -> Iterator[None]:
    """Collect no garbage meanwhile; what there is after the first time in a process is never looked at."""
    gc.disable()
    try:
        yield
    finally:
        if os.getpid() not in _frozen:
            _frozen.add(os.getpid())
            gc.collect()
            gc.freeze()
        gc.enable()
