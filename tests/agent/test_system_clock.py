"""The clock that another thread or a signal handler can wake."""

import sys
import time
from threading import Thread
from types import FrameType
from typing import Any

from headwater.agent.run import SystemClock


def test_signal_handler_may_wake_clock_at_any_moment_of_a_wait() -> None:
    clock = SystemClock()

    def interrupt(_: FrameType, __: str, ___: object) -> Any:  # noqa: ANN401 - a trace function
        clock.wake()
        return interrupt

    def wait() -> None:
        sys.settrace(interrupt)
        clock.wait(0)
        clock.wait(0.01)
        sys.settrace(None)

    waiting = Thread(target=wait, daemon=True)
    waiting.start()
    waiting.join(60)
    assert not waiting.is_alive()


def test_several_calls_of_wake_end_one_wait() -> None:
    clock = SystemClock()
    clock.wake()
    clock.wake()
    begin = time.monotonic()
    clock.wait(250)
    assert time.monotonic() - begin < 120
    begin = time.monotonic()
    clock.wait(0.05)
    assert time.monotonic() - begin >= 0.04
