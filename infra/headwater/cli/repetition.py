"""Repeat until Ctrl-C."""

import signal
import time
from collections.abc import Iterator
from types import FrameType


def repeat(interval: float) -> Iterator[None]:
    """Yield at once, and again after each `interval` seconds, until Ctrl-C raises `KeyboardInterrupt`.

    Python ignores exceptions in finalizers and in callbacks of weak references, also `KeyboardInterrupt`. So
    the signal is remembered, and raised again after the iteration in which it was lost. Call it in the main
    thread.
    """
    interrupted = False

    def interrupt(_: int, __: FrameType | None) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        while not interrupted:
            yield
            if not interrupted:
                time.sleep(interval)
        raise KeyboardInterrupt
    finally:
        signal.signal(signal.SIGINT, before)
