"""How long a thread of this process computes before another one may."""

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
